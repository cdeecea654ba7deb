package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"
)

// usedMessages returns the keys of the templates, of the code and of app.js, each with the
// file that uses it.
func usedMessages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range matches(t, "templates/*.html") {
		for _, call := range messageCalls(t, file) {
			key, ok := call.Args[1].(*parse.StringNode)
			if !ok {
				t.Errorf("%s: the key of %s must be a literal", file, call)
				continue
			}
			out[key.Text] = file
		}
	}
	for _, file := range matches(t, "*.go") {
		if strings.HasSuffix(file, "_test.go") || file == "catalog.go" {
			continue
		}
		for _, call := range goCalls(t, file) {
			if name := called(call); name != "msg" && name != "text" || len(call.Args) == 0 {
				continue
			}
			if key := goString(call.Args[0]); key != "" {
				out[key] = file
			} else {
				t.Errorf("%s: the key of a message must be a literal", file)
			}
		}
	}
	for _, key := range scriptMessages(readFile(t, "assets/app.js")) {
		out[key] = "app.js"
	}
	return out
}

// called returns the name of the called function or method.
func called(c *ast.CallExpr) string {
	f := c.Fun
	if s, ok := f.(*ast.SelectorExpr); ok {
		f = s.Sel
	}
	if name, ok := f.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// messageCalls returns the calls of t and tHTML in a template.
func messageCalls(t *testing.T, file string) (calls []*parse.CommandNode) {
	t.Helper()
	for _, tree := range parsed(t, file) {
		walk(tree.Root, func(n parse.Node) {
			if c, ok := n.(*parse.CommandNode); ok {
				if f, ok := c.Args[0].(*parse.IdentifierNode); ok && (f.Ident == "t" || f.Ident == "tHTML") {
					calls = append(calls, c)
				}
			}
		})
	}
	return calls
}

// parsed returns the templates of a file by name.
func parsed(t *testing.T, file string) map[string]*parse.Tree {
	t.Helper()
	trees := map[string]*parse.Tree{}
	root := parse.New(file)
	root.Mode = parse.SkipFuncCheck
	if _, err := root.Parse(string(readFile(t, file)), "", "", trees); err != nil {
		t.Fatal(err)
	}
	return trees
}

// walk calls visit for a node and the nodes in it.
func walk(n parse.Node, visit func(parse.Node)) {
	visit(n)
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				walk(child, visit)
			}
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.TemplateNode:
		walk(n.Pipe, visit)
	case *parse.IfNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.WithNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.RangeNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.PipeNode:
		if n != nil {
			for _, c := range n.Cmds {
				walk(c, visit)
			}
		}
	case *parse.CommandNode:
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	}
}

func walkBranch(n *parse.BranchNode, visit func(parse.Node)) {
	walk(n.Pipe, visit)
	walk(n.List, visit)
	walk(n.ElseList, visit)
}

// goCalls returns the calls in a Go file.
func goCalls(t *testing.T, file string) (calls []*ast.CallExpr) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			calls = append(calls, c)
		}
		return true
	})
	return calls
}

// goString returns the value of a string literal or of several ones, "" for other
// expressions.
func goString(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		if left, right := goString(e.X), goString(e.Y); left != "" && right != "" {
			return left + right
		}
	}
	return ""
}

func matches(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
