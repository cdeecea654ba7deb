package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readsTables are the statements that read a table although a view has its live rows, or messages, which have no view,
// and why. A statement has the name of its query, of its function in the database, or of its file and declaration in Go.
var readsTables = map[string]string{
	"live_conversations": "the definition",
	"live_memories":      "the definition",
	"live_units":         "the definition",
	"lexical_ranking":    "reads units by ctid, which a view lacks; repeats the condition of live_units",

	"DescribeUnits":                 "messages of live units, and those around them",
	"LoadUnits":                     "messages of live units",
	"ResolveChatUnits":              "messages of live units",
	"units_exact.go writtenBetween": "messages of live units",
	"Passages":                      "messages of a live conversation",
	"ListMessages":                  "messages of conversations that the transaction has read or locked",
	"Openings":                      "messages of conversations of a list",
	"CountAccount":                  "messages, as in the export",
	"snapshot.go Messages":          "export: a join may sort all messages of the user",
	"ProbeUnits":                    "messages of live units, to compare generations",
	"QuotedMessages":                "indexing: quotations also refer to conversations that are blocked",

	"MemoryBytes":         "usage",
	"NewestBlocked":       "quota",
	"NewestBlockedOfUser": "quota",
	"OldestActive":        "quota",
	"OldestActiveOfUser":  "quota",
	"OverUserQuota":       "quota",
	"BlockedOfImport":     "quota",

	"AccountIsEmpty":       "restore: no row may exist",
	"ConversationsOfUser":  "purge",
	"ConversationsToPurge": "purge",
	"CountRemaining":       "purge",
	"MarkAccount":          "purge",
	"MemoriesOfUser":       "purge",
	"MemoriesToPurge":      "purge",

	"erase.go IndexedUnits":             "erasure: what the vector store contains",
	"HasUnits":                          "placement: what the vector store contains",
	"tenant_copy.go countVectors":       "copy of a tenant",
	"tenant_copy_tables.go forTarget":   "copy of a tenant",
	"deletions.go restoreConversations": "undo of a deletion",
	"deletions.go restoreMemories":      "undo of a deletion",
	"deletions.go restoreUnits":         "undo of a deletion",
}

var (
	// readsTable matches a read of a table, not of its view. Go code inserts some names into statements.
	readsTable = regexp.MustCompile(`\b(?:from|join)\s+(?:public\.)?(?:memories|conversations|messages|units)\b` +
		`|^(?:memories|conversations|messages|units)(?: \w)?$`)
	// writes matches a statement that writes or locks rows.
	writes = regexp.MustCompile(`\b(?:insert into|delete from|update) \w|\bfor (?:no key )?update\b`)
	// beginsQuery and beginsFunction match the beginning of a statement with its name.
	beginsQuery    = regexp.MustCompile(`(?m)^-- name: (\w+)`)
	beginsFunction = regexp.MustCompile(`(?m)^create or replace (?:function|view) (\w+)`)
	sqlComment     = regexp.MustCompile(`(?m)--.*$`)
)

// Without this test, a read added later would show what a state hides, such as a memory in the trash.
func TestReadsUseLiveViews(t *testing.T) {
	t.Parallel()
	statements := goStatements(t)
	for _, file := range filesWith(t, "queries", ".sql") {
		maps.Copy(statements, sqlStatements(t, file, beginsQuery))
	}
	for _, file := range filesWith(t, "repeatable", ".sql") {
		maps.Copy(statements, sqlStatements(t, file, beginsFunction))
	}
	var found []string
	for name, parts := range statements {
		if slices.ContainsFunc(parts, func(sql string) bool {
			return readsTable.MatchString(sql) && !writes.MatchString(sql)
		}) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(readsTables)), found); diff != "" {
		t.Errorf("statements that read memories, conversations or units instead of live_memories, live_conversations or "+
			"live_units, or that read messages (-readsTables +found):\n%s", diff)
	}
}

// sqlStatements returns the statements of a file by name, without comments.
func sqlStatements(t *testing.T, file string, begins *regexp.Regexp) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	at := begins.FindAllSubmatchIndex(content, -1)
	for i, m := range at {
		end := len(content)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out[string(content[m[2]:m[3]])] = []string{sqlComment.ReplaceAllString(string(content[m[0]:end]), "")}
	}
	return out
}

// goStatements returns the strings of the package without tests by the name of their declaration.
func goStatements(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			for name, node := range declared(decl) {
				ast.Inspect(node, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						text, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						out[path+" "+name] = append(out[path+" "+name], text)
					}
					return true
				})
			}
		}
	}
	return out
}

// declared returns what a declaration declares by name, except imports.
func declared(decl ast.Decl) map[string]ast.Node {
	out := map[string]ast.Node{}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		out[d.Name.Name] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				out[v.Names[0].Name] = v
			}
		}
	}
	return out
}

// filesWith returns the files below a directory that have an extension.
func filesWith(t *testing.T, dir, ext string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ext {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
