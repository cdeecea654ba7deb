package dashboard

import (
	"fmt"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// messageRenderer renders what differs from a document: a message is a part of a page.
type messageRenderer struct{ *locale }

// RegisterFuncs implements renderer.NodeRenderer.
func (r messageRenderer) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindHeading, r.heading)
	to.Register(ast.KindCodeBlock, r.code)
	to.Register(ast.KindFencedCodeBlock, r.code)
	to.Register(ast.KindHTMLBlock, r.htmlBlock)
	to.Register(ast.KindRawHTML, r.rawHTML)
	to.Register(east.KindTable, r.table)
	to.Register(kindCitation, r.citation)
}

// heading renders a heading below those of the messages, whatever its level.
func (messageRenderer) heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</p>\n")
		return ast.WalkContinue, nil
	}
	class := "h1"
	if heading, ok := node.(*ast.Heading); ok {
		class = fmt.Sprintf("h%d", heading.Level)
	}
	if _, hit := node.AttributeString("class"); hit {
		class += " hit"
	}
	node.SetAttributeString("class", []byte(class))
	_, _ = w.WriteString(`<p role="heading" aria-level="3"`)
	html.RenderAttributes(w, node, html.ParagraphAttributeFilter)
	_ = w.WriteByte('>')
	return ast.WalkContinue, nil
}

// code renders a block of code with a button that copies it.
func (r messageRenderer) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<div class="snippet"><button type="button" data-copy data-scripted hidden>` + r.text("Copy") + `</button><pre tabindex="0"`)
	html.RenderAttributes(w, node, html.ParagraphAttributeFilter)
	_, _ = w.WriteString("><code>")
	writeLines(w, source, node)
	_, _ = w.WriteString("</code></pre></div>\n")
	return ast.WalkSkipChildren, nil
}

// htmlBlock renders HTML as text.
func (messageRenderer) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<p class="verbatim">`)
	writeLines(w, source, node)
	if block, ok := node.(*ast.HTMLBlock); ok && block.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(block.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</p>\n")
	return ast.WalkContinue, nil
}

// rawHTML renders HTML within a line as text.
func (messageRenderer) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	if raw, ok := node.(*ast.RawHTML); ok {
		for i := range raw.Segments.Len() {
			segment := raw.Segments.At(i)
			_, _ = w.Write(util.EscapeHTML(segment.Value(source)))
		}
	}
	return ast.WalkSkipChildren, nil
}

// table renders a table that scrolls if it is wider than the page.
func (r messageRenderer) table(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="scroll" role="group" aria-label="` + r.text("Table") + `" tabindex="0"><table`)
		html.RenderAttributes(w, node, extension.TableAttributeFilter)
		_, _ = w.WriteString(">\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

func writeLines(w util.BufWriter, source []byte, node ast.Node) {
	lines := node.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		_, _ = w.Write(util.EscapeHTML(line.Value(source)))
	}
}
