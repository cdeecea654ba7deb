package dashboard

import (
	"context"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newMarkdown returns the renderer of messages or answers in a language: headings, lists,
// tables, code and links. HTML in a message is shown as text, and nothing is loaded from
// other hosts.
func newMarkdown(l *locale, p parser.Parser) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(p),
		goldmark.WithExtensions(tables{}, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(messageTransformer{l}, 1000))),
		goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(messageRenderer{l}, 1))),
	)
}

// Context keys of the range to highlight.
var (
	keyFrom = parser.NewContextKey()
	keyTo   = parser.NewContextKey()
)

// renderMarkdown returns a message as HTML, with the blocks highlighted that overlap the byte
// range from..to. The first one has the id "found". A text without a valid range, such as
// -1..-1, has no highlight. It returns false if the text exceeds the budget.
func renderMarkdown(ctx context.Context, l *locale, text string, from, to int) (template.HTML, bool, error) {
	in := parser.NewContext()
	in.Set(keyFrom, from)
	in.Set(keyTo, to)
	return convert(ctx, l.markdown, text, in)
}

// messageTransformer makes links safe, replaces images by links, and highlights blocks.
type messageTransformer struct{ *locale }

// Transform implements parser.ASTTransformer.
func (t messageTransformer) Transform(doc *ast.Document, reader text.Reader, ctx parser.Context) {
	var images []*ast.Image
	var links []ast.Node
	var blocks []ast.Node
	from, _ := ctx.Get(keyFrom).(int)
	to, _ := ctx.Get(keyTo).(int)
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch image := n.(type) {
		case *ast.Image:
			images = append(images, image)
		case *ast.Link, *ast.AutoLink:
			links = append(links, n)
		}
		if n.Type() == ast.TypeBlock && overlaps(n, from, to) {
			blocks = append(blocks, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range images {
		links = append(links, imageLink(n, t.text("Image")))
	}
	if destinationBytes(links) > maxHTML(len(reader.Source())) {
		ctx.Set(keyOverBudget, true)
		return
	}
	for _, n := range links {
		secureLink(n, reader.Source())
	}
	for i, n := range blocks {
		if n.Kind() == ast.KindTextBlock { // has no element
			n = n.Parent()
		}
		n.SetAttributeString("class", []byte("hit"))
		if i == 0 {
			n.SetAttributeString("id", []byte("found"))
		}
	}
}

// overlaps reports whether the lines of a block overlap a byte range.
func overlaps(n ast.Node, from, to int) bool {
	lines := n.Lines()
	if from < 0 || lines == nil || lines.Len() == 0 {
		return false
	}
	return lines.At(0).Start < to && lines.At(lines.Len()-1).Stop > from
}

// imageLink replaces an image by a link to it, with a text if the image has none.
func imageLink(image *ast.Image, text string) ast.Node {
	link := ast.NewLink()
	link.Destination = image.Destination
	for image.FirstChild() != nil {
		link.AppendChild(link, image.FirstChild())
	}
	if link.FirstChild() == nil {
		link.AppendChild(link, ast.NewString([]byte(text)))
	}
	image.Parent().ReplaceChild(image.Parent(), image, link)
	return link
}

// secureLink makes a link open another tab that learns nothing of this one. A link to
// anything but a web page or an email address becomes text.
func secureLink(n ast.Node, source []byte) {
	destination := ""
	switch link := n.(type) {
	case *ast.Link:
		destination = string(link.Destination)
	case *ast.AutoLink:
		destination = string(link.URL(source))
		if link.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(destination), "mailto:") {
			destination = "mailto:" + destination
		}
	}
	u, err := url.Parse(destination)
	if err == nil && slices.Contains([]string{"http", "https", "mailto"}, strings.ToLower(u.Scheme)) {
		n.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		n.SetAttributeString("target", []byte("_blank"))
		return
	}
	parent := n.Parent()
	if auto, ok := n.(*ast.AutoLink); ok {
		label := ast.NewString(auto.Label(source))
		label.SetRaw(true)
		parent.ReplaceChild(parent, n, label)
		return
	}
	for n.FirstChild() != nil {
		parent.InsertBefore(parent, n, n.FirstChild())
	}
	parent.RemoveChild(parent, n)
}
