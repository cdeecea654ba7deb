package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// source collects the texts of a Go file.
type source struct {
	texts *Texts
	file  string // path in the repository
}

// collectGo collects the texts of the Go files of the product.
func collectGo(root string, texts *Texts) error {
	for _, dir := range []string{"api", "apiserver", "cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isProduct(path) {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			s := &source{texts: texts, file: filepath.ToSlash(name)}
			ast.Inspect(parsed, s.visit)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isProduct reports whether a file is hand-written Go code of the product.
func isProduct(path string) bool {
	name := filepath.Base(path)
	generated := strings.HasSuffix(name, ".gen.go") || strings.HasPrefix(name, "zz_generated") ||
		strings.Contains(filepath.ToSlash(path), "internal/postgres/db/")
	testing := strings.HasSuffix(name, "_test.go") || strings.Contains(path, "testkit") || strings.Contains(path, "postgrestest") ||
		strings.Contains(path, "tenanttest")
	return strings.HasSuffix(name, ".go") && !generated && !testing
}

// visit collects the texts of a node.
func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		s.tag(n)
		return n.Type != nil // tags are literals too
	case *ast.CallExpr:
		s.call(n)
	case *ast.CompositeLit:
		s.composite(n)
	case *ast.ValueSpec:
		for _, v := range n.Values {
			s.prose(v)
		}
	case *ast.KeyValueExpr:
		s.prose(n.Value)
	case *ast.AssignStmt:
		for _, v := range n.Rhs {
			s.prose(v)
		}
	case *ast.ReturnStmt:
		for _, v := range n.Results {
			s.prose(v)
		}
	}
	return true
}

// tag collects the documentation in a struct tag.
func (s *source) tag(f *ast.Field) {
	if f.Tag == nil {
		return
	}
	raw, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return
	}
	tag := reflect.StructTag(raw)
	s.texts.add("command-line help", s.file, tag.Get("help"))
	s.texts.add("MCP description", s.file, tag.Get("jsonschema"))
}

// constructors are the functions whose argument at an index is a text.
var constructors = map[string]struct {
	kind string
	arg  int
}{
	"fault.New": {"error", 1}, "fault.Wrap": {"error", 2}, "fmt.Errorf": {"error", 0}, "errors.New": {"error", 0},
	"prometheus.NewDesc": {"metric help", 1}, "kong.Description": {"command-line help", 0},
	"fmt.Fprintf": {"command output", 1}, "fmt.Fprintln": {"command output", 1},
	"fmt.Printf": {"command output", 0}, "fmt.Println": {"command output", 0}, "fmt.Sprintf": {"message", 0},
}

// logMethods are the logging methods; their message is the first literal.
var logMethods = []string{"Debug", "Info", "Warn", "Error", "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "LogAttrs"}

// call collects the text in a call.
func (s *source) call(c *ast.CallExpr) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		s.plainCall(c)
		return
	}
	name := f.Sel.Name
	if x, ok := f.X.(*ast.Ident); ok {
		name = x.Name + "." + f.Sel.Name
	}
	switch known, ok := constructors[name]; {
	case ok && len(c.Args) > known.arg:
		s.texts.add(known.kind, s.file, literal(c.Args[known.arg]))
	case ok:
	case f.Sel.Name == "Add" && len(c.Args) > 1:
		s.texts.add("error", s.file, literal(c.Args[1]))
	case slices.Contains(logMethods, f.Sel.Name):
		for _, arg := range c.Args {
			if text := literal(arg); text != "" {
				s.texts.add("log message", s.file, text)
				return
			}
		}
	default:
		s.args(c.Args)
	}
}

// plainCall collects the texts in a call of a function of the package.
func (s *source) plainCall(c *ast.CallExpr) {
	name, ok := c.Fun.(*ast.Ident)
	switch {
	case ok && name.Name == "msg" && len(c.Args) > 0: // of the dashboard
		s.texts.add("page", s.file, literal(c.Args[0]))
	case len(c.Args) > 1 && len(c.Args) < 6, ok && name.Name == "truncate":
		s.args(c.Args)
	}
}

func (s *source) args(args []ast.Expr) {
	for _, arg := range args {
		s.prose(arg)
	}
}

// composite collects the texts of fields with a known meaning.
func (s *source) composite(c *ast.CompositeLit) {
	for _, e := range c.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			s.prose(e)
			continue
		}
		if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Help" {
			s.texts.add("metric help", s.file, literal(kv.Value))
		}
	}
}

// prose collects a literal that is a sentence, in the packages that contain texts
// outside of the known constructors.
func (s *source) prose(e ast.Expr) {
	text := literal(e)
	if !isProse(text) {
		return
	}
	switch {
	case strings.HasPrefix(s.file, "apiserver/mcp/"):
		s.texts.add("MCP description", s.file, text)
	case strings.HasPrefix(s.file, "apiserver/dashboard/"):
		s.texts.add("page", s.file, text)
	case strings.HasPrefix(s.file, "apiserver/"):
		s.texts.add("API text", s.file, text)
	case strings.HasPrefix(s.file, "controllers/"):
		s.texts.add("condition or event", s.file, text)
	case strings.HasPrefix(s.file, "cmd/"):
		s.texts.add("command output", s.file, text)
	default:
		s.texts.add("message", s.file, text)
	}
}

// literal returns the text of a string expression, with … for the parts that are
// not constant; "" for other expressions.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		left, right := literal(e.X), literal(e.Y)
		if e.Op == token.ADD && left+right != "" {
			return orEllipsis(left) + orEllipsis(right)
		}
	}
	return ""
}

func orEllipsis(text string) string {
	if text == "" {
		return "…"
	}
	return text
}
