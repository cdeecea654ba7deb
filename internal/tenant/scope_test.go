package tenant_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scopeCreators are the files that may create a scope, each with the ways it
// uses. A literal outside of authentication would let code choose whose data it
// accesses.
var scopeCreators = map[string][]string{
	"cmd/mnemo/erase.go":                {"JobScope"},             // of a tenant that an administrator erases
	"internal/jobs/jobs.go":             {"JobScope", "JobScope"}, // of a user who is purged, and of one who has deleted something
	"internal/postgres/account.go":      {"JobScope"},
	"internal/postgres/erase.go":        {"JobScope", "JobScope"}, // of a user whom an administrator erases, by name or number
	"internal/postgres/erasures.go":     {"JobScope"},
	"internal/postgres/extractions.go":  {"JobScope"},
	"internal/postgres/import_runs.go":  {"ImportScope"},
	"internal/postgres/rebalance.go":    {"JobScope"},
	"internal/postgres/applications.go": {"literal"}, // of a user of the application's tenant, by name
	// Authentication: each looks up a credential by its hash.
	"internal/postgres/grants.go": {"literal"},
	"internal/postgres/tokens.go": {"literal"},
	// The key of a cached identity that is dropped; it accesses no data.
	"internal/postgres/notify.go": {"literal"},
}

func TestScopesAreCreatedInFewPlaces(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.FromSlash("../../")))
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".git") || name == "internal/tenant" || name == "test" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if created := scopesCreated(file); len(created) > 0 {
			got[name] = created
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(scopeCreators, got); diff != "" {
		t.Errorf("files that create a tenant.Scope (-allowed +found):\n%s", diff)
	}
}

// scopesCreated returns how a file creates scopes, in order: by a literal with
// fields, by a conversion or an assignment to a field, or by a constructor.
func scopesCreated(file *ast.File) []string {
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if name := tenantName(n.Type); name == "Scope" && len(n.Elts) > 0 {
				out = append(out, "literal")
			}
		case *ast.CallExpr:
			switch name := tenantName(n.Fun); name {
			case "Scope":
				out = append(out, "conversion")
			case "JobScope", "ImportScope":
				out = append(out, name)
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if assignsScope(left) {
					out = append(out, "assignment")
				}
			}
		}
		return true
	})
	return out
}

// tenantName returns the name of a selector in package tenant.
func tenantName(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "tenant" {
		return ""
	}
	return s.Sel.Name
}

// assignsScope reports whether the expression is a field of a variable or field
// named scope.
func assignsScope(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Tenant" && s.Sel.Name != "User" {
		return false
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "scope")
	case *ast.SelectorExpr:
		return x.Sel.Name == "Scope"
	}
	return false
}
