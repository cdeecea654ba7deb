package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// CollectDocuments collects the paragraphs of the Markdown documents and the comments of the Go
// files, their templates and the SQL files of the repository at root, each as "file: text"
// without line breaks.
func CollectDocuments(root string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "dist", "node_modules", "testdata"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		var texts []string
		switch {
		case strings.HasSuffix(path, ".md"):
			texts, err = paragraphs(path)
		case strings.HasSuffix(path, ".go"):
			texts, err = comments(path)
		case strings.HasSuffix(path, ".tmpl"):
			texts, err = matches(path, templateComment)
		case strings.HasSuffix(path, ".sql"):
			texts, err = matches(path, sqlComment)
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if words := strings.Fields(text); len(words) > 0 {
				out = append(out, filepath.ToSlash(name)+": "+strings.Join(words, " "))
			}
		}
		return nil
	})
	return out, err
}

// fenced is an example in a document.
var fenced = regexp.MustCompile("(?ms)^ *```.*?\n *```$")

// paragraphs returns the paragraphs, rows and headings of a document without its examples.
func paragraphs(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(fenced.ReplaceAllString(string(content), ""), "\n\n"), nil
}

var (
	templateComment = regexp.MustCompile(`(?s){{/\*(.*?)\*/}}|// ([^\n]*)`)
	sqlComment      = regexp.MustCompile(`-- ([^\n]*(?:\n *-- [^\n]*)*)`)
)

// matches returns what the groups of an expression match in a file.
func matches(path string, expression *regexp.Regexp) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range expression.FindAllStringSubmatch(string(content), -1) {
		out = append(out, strings.ReplaceAll(strings.Join(m[1:], ""), "-- ", ""))
	}
	return out, nil
}

// comments returns the comments of a Go file that is not generated.
func comments(path string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	out := make([]string, len(f.Comments))
	for i, c := range f.Comments {
		out[i] = c.Text()
	}
	return out, nil
}
