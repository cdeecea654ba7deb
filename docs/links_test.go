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
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code = regexp.MustCompile("`([a-z][a-zA-Z0-9_.-]*(?:/[a-zA-Z0-9_.-]+)+)`")
)

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	for _, file := range markdownFiles(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
}

// Paths in the documents that explain the tree must exist.
func TestPathsExist(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/architecture.md"} {
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
