package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shown are the packages and files whose errors users of the dashboard see.
var shown = []string{
	"*.go", "../../internal/chatexport/*.go", "../../internal/importer/*.go", "../../internal/memory/buckets.go",
	"../../internal/memory/bucket_rules.go", "../../internal/memory/update.go", "../../internal/tenant/usertoken.go", "../../internal/tenant/quota.go",
	"../../internal/tenant/errors.go", "../../internal/chat/errors.go", "../../internal/oauth/errors.go", "../../internal/postgres/deletions.go",
	"../../internal/postgres/oidc.go", "../../apiserver/export_limits.go",
}

// notShown are errors in these files that consist of other entries, and those that users of
// the dashboard cannot cause: its forms send ids, have no field platform and redeem no code.
var notShown = []string{"%s", "%s: %s", "%s. %s", "platform must be one of %s", "no bucket has both this id and this name", "user not found",
	"it is unknown, has expired or was used before"}

// composed are errors that the code composes.
var composed = regexp.MustCompile(`quota exceeded|^the file contains no conversations|^internal error|^request rate limit|^a file of type |^JSON without|^a JSON list without|is not JSON; skipped$|ends unexpectedly; skipped$|^Imported only the text|^too large$`)

// TestErrorsAreTranslated: the catalogs have the errors that users see, and no others.
func TestErrorsAreTranslated(t *testing.T) {
	t.Parallel()
	for lang, c := range catalogs {
		if lang == "en" {
			continue
		}
		for _, pattern := range shown {
			for _, file := range matches(t, pattern) {
				for _, format := range faults(t, file) {
					if _, ok := c.Errors[format]; !ok && !slices.Contains(notShown, format) {
						t.Errorf("messages/%s.json has no error %q of %s", lang, format, file)
					}
				}
			}
		}
		literals := goLiterals(t, "../../internal", "..")
		for _, key := range slices.Concat(slices.Collect(maps.Keys(c.Errors)), slices.Collect(maps.Keys(c.Terms))) {
			if !literals[key] && !composed.MatchString(key) {
				t.Errorf("messages/%s.json has %q, which no error contains", lang, key)
			}
		}
	}
}

// faults returns the formats of the errors and the problems of fields in a Go file.
func faults(t *testing.T, file string) (formats []string) {
	t.Helper()
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	for _, call := range goCalls(t, file) {
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		x, _ := s.X.(*ast.Ident)
		n, known := map[string]int{"New": 1, "Wrap": 2, "Add": 1}[s.Sel.Name]
		if !known || s.Sel.Name != "Add" && (x == nil || x.Name != "fault") || len(call.Args) <= n {
			continue
		}
		if format := goString(call.Args[n]); format != "" {
			formats = append(formats, format)
		}
	}
	return formats
}

// goLiterals returns the string constants in the Go files of folders.
func goLiterals(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					out[goString(e)] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
