// Package docs_test checks the documentation against the tree.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = ".."

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	named    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
	code     = regexp.MustCompile("`([a-z][a-zA-Z0-9_.-]*(?:/[a-zA-Z0-9_.-]+)+)`")

	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	for _, file := range markdownFiles(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if anchor != "" && filepath.Ext(path) == ".md" && !anchors(t, path)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", file, m[1])
			}
		}
	}
}

// anchors returns the anchors that GitHub generates from the headings of a document.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(read(t, file), -1) {
		found[strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

// Paths in the documents that explain the tree must exist.
func TestPathsExist(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/security.md", "docs/reliability.md", "docs/trust-model.md"} {
		for _, m := range code.FindAllStringSubmatch(read(t, filepath.Join(root, file)), -1) {
			path := m[1]
			first, _, _ := strings.Cut(path, "/")
			if _, err := os.Stat(filepath.Join(root, first)); err != nil || first == "bin" || strings.Contains(path, "NAME") {
				continue // not a path in the repository
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s: %v", file, path, err)
			}
		}
	}
}

// The tests that documents name as evidence must exist.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	names, found := testNames(t), 0
	for _, file := range markdownFiles(t) {
		for _, m := range named.FindAllStringSubmatch(read(t, file), -1) {
			if found++; !names[m[1]] {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document names a test")
	}
}

// testNames returns the names of all tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range testFiles(t) {
		for _, m := range declared.FindAllStringSubmatch(read(t, file), -1) {
			names[m[1]] = true
		}
	}
	return names
}

func testFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func markdownFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
