package texts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// collectFiles collects the texts of files other than Go code.
func collectFiles(root string, texts *Texts) error {
	for _, f := range []struct {
		glob, kind string
		collect    func(t *Texts, kind, name string, content []byte) error
	}{
		{"api/openapi.json", "OpenAPI", document("summary", "description", "title")},
		{"apiserver/dashboard/templates/*.html", "page", page},
		{"apiserver/dashboard/assets/*.js", "page", script},
		{"apiserver/dashboard/messages/en.json", "page", document("one")},
		{"charts/mnemo/files/rules.yaml", "alert", document("summary", "description")},
		{"charts/mnemo/files/dashboards/*.json", "Grafana dashboard", document("title", "description", "legendFormat")},
		{"charts/mnemo/files/*tenants.yaml", "admission error", document("message")},
		{"charts/mnemo/templates/NOTES.txt", "chart", lines},
		{"charts/mnemo/templates/*.tpl", "chart", failures},
		{"charts/mnemo/templates/*.yaml", "chart", failures},
	} {
		paths, err := filepath.Glob(filepath.Join(root, f.glob))
		if err != nil {
			return err
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			if err := f.collect(texts, f.kind, filepath.ToSlash(name), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// document collects the values of some keys of a JSON or YAML document.
func document(keys ...string) func(t *Texts, kind, name string, content []byte) error {
	return func(t *Texts, kind, name string, content []byte) error {
		var root any
		decode := yaml.Unmarshal
		if strings.HasSuffix(name, ".json") {
			decode = json.Unmarshal
		}
		if err := decode(content, &root); err != nil {
			return err
		}
		walk(root, func(key, text string) {
			for _, k := range keys {
				if k == key {
					t.add(kind, name, text)
				}
			}
		})
		return nil
	}
}

func walk(node any, found func(key, text string)) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			walk(item, found)
		}
	case map[string]any:
		for key, value := range node {
			if text, ok := value.(string); ok {
				found(key, text)
			}
			walk(value, found)
		}
	}
}

var (
	comment   = regexp.MustCompile(`(?s){{/\*.*?\*/}}`)
	message   = regexp.MustCompile("{{-? *t(?:HTML)? (?:\"((?:[^\"\\\\]|\\\\.)*)\"|`([^`]*)`)[^}]*}}")
	otherwise = regexp.MustCompile(`{{-? *else[^}]*}}`)
	control   = regexp.MustCompile(`{{-? *(if|end|range|with|template|define|\$\w+ :?=)[^}]*}}`)
	action    = regexp.MustCompile(`{{[^}]*}}`)
	code      = regexp.MustCompile(`(?s)<(pre|svg)[ >].*?</(pre|svg)>`)
	label     = regexp.MustCompile(`(?:aria-label|placeholder|title|alt)="([^"]*)"`)
	inline    = regexp.MustCompile(`</?(a|b|bdi|code|em|strong|time)( [^>]*)?>`)
	tag       = regexp.MustCompile(`<[^>]*>`)
	spaces    = regexp.MustCompile(`\s+`)
	quoted    = regexp.MustCompile(`"([^"\n]*)"`)
	uiText    = regexp.MustCompile(`^( [a-z]+\.?|[A-Z][a-z]+( [\w+]+)*(…|\.)?.*)$`)
	failure   = regexp.MustCompile(`fail (?:\(printf )?"((?:[^"\\]|\\.)*)"`)
)

// page collects the text nodes, labels and messages of an HTML template. Alternatives
// are separated by a slash, and values are shown as {…}, or as a verb in messages.
func page(t *Texts, kind, name string, content []byte) error {
	text := code.ReplaceAllString(comment.ReplaceAllString(string(content), ""), "\x00")
	text = message.ReplaceAllString(text, "$1$2")
	text = otherwise.ReplaceAllString(text, " / ")
	text = action.ReplaceAllString(control.ReplaceAllString(text, ""), "{…}")
	for _, m := range label.FindAllStringSubmatch(text, -1) {
		t.add(kind, name, m[1])
	}
	text = tag.ReplaceAllString(inline.ReplaceAllString(text, ""), "\x00")
	for node := range strings.SplitSeq(text, "\x00") {
		t.add(kind, name, strings.Trim(spaces.ReplaceAllString(node, " "), " "))
	}
	return nil
}

// script collects the strings of a script that are shown on a page.
func script(t *Texts, kind, name string, content []byte) error {
	for _, m := range quoted.FindAllStringSubmatch(string(content), -1) {
		if uiText.MatchString(m[1]) {
			t.add(kind, name, m[1])
		}
	}
	return nil
}

// lines collects every line.
func lines(t *Texts, kind, name string, content []byte) error {
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "{{") {
			t.add(kind, name, strings.TrimSpace(line))
		}
	}
	return nil
}

// failures collects the messages of fail in a chart template.
func failures(t *Texts, kind, name string, content []byte) error {
	for _, m := range failure.FindAllStringSubmatch(string(content), -1) {
		t.add(kind, name, m[1])
	}
	return nil
}
