package dashboard

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// TestTemplatesHaveNoLiteralText: people read only messages, except names that are the same
// in every language, which are marked with translate="no".
func TestTemplatesHaveNoLiteralText(t *testing.T) {
	t.Parallel()
	for _, file := range matches(t, "templates/*.html") {
		for name, tree := range parsed(t, file) {
			for _, text := range literalTexts(t, tree) {
				t.Errorf("%s, %s: %q must be a message: {{t %q}}", file, name, text, text)
			}
		}
	}
}

// TestLiteralTextsAreFound: the test above finds texts and labels.
func TestLiteralTextsAreFound(t *testing.T) {
	t.Parallel()
	tree := parse.New("x")
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(`<p title="A title">{{t "Fine"}}{{if .X}}one{{else}}<b>two</b>{{end}} <code>code</code></p>`+
		`<input placeholder="{{t "Fine"}}" aria-label="A {{.Label}}"><i translate="no">Mnemo</i>`, "", "", trees); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A title", "one", "two", "A …"}, literalTexts(t, trees["x"])); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// literalTexts returns the texts and labels of a template that are not messages.
func literalTexts(t *testing.T, tree *parse.Tree) (texts []string) {
	t.Helper()
	var page strings.Builder
	walk(tree.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.TextNode:
			page.Write(n.Text)
		case *parse.ActionNode:
			page.WriteString("…")
		}
	})
	root, err := html.Parse(strings.NewReader(page.String()))
	if err != nil {
		t.Fatal(err)
	}
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		if untranslated(n) {
			return
		}
		if text := strings.TrimSpace(n.Data); n.Type == html.TextNode && letter.MatchString(strings.ReplaceAll(text, "· Mnemo", "")) {
			texts = append(texts, strings.Trim(text, "…"))
		}
		for _, a := range n.Attr {
			if slices.Contains([]string{"title", "placeholder", "aria-label", "alt"}, a.Key) && letter.MatchString(a.Val) {
				texts = append(texts, a.Val)
			}
		}
		for child := range n.ChildNodes() {
			visit(child)
		}
	}
	visit(root)
	return texts
}

var letter = regexp.MustCompile(`\pL`)

// untranslated reports whether an element has no text of a language.
func untranslated(n *html.Node) bool {
	return n.Type == html.ElementNode && slices.Contains([]string{"code", "pre", "script", "svg"}, n.Data) ||
		slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "translate" && a.Val == "no" })
}
