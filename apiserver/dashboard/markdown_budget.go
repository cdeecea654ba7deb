package dashboard

import (
	"bytes"
	"context"
	"errors"
	"html/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxMarkdown is the maximum size of a text that is rendered at once. The time of some texts
	// is quadratic in it, and rendering is cancelled only between texts.
	maxMarkdown = partBytes + len(openFence)
	// htmlFactor and htmlExtra are the maximum size of the HTML of a text: a multiple of the text, and a constant.
	htmlFactor = 16
	htmlExtra  = 1 << 10
	// maxOpenBlocks is the maximum nesting of quotes and lists; a list with its item counts twice. For each line, the
	// parser visits all blocks that are open.
	maxOpenBlocks = 24
	// maxDestinations is the maximum number of bytes that are searched for the ends of the destinations of links, in
	// total. A destination that does not end is searched up to the end of its line, for each link.
	maxDestinations = 1 << 20
)

// maxHTML returns the maximum size of the HTML of a text of n bytes.
func maxHTML(n int) int { return htmlFactor*n + htmlExtra }

// keyOverBudget is the context key that is set if a text exceeds the budget, and keyDestinations that of the bytes
// searched so far for the ends of destinations.
var (
	keyOverBudget   = parser.NewContextKey()
	keyDestinations = parser.NewContextKey()
)

// convert renders a text within the budget. It returns false if the text exceeds it. All Markdown is rendered here.
func convert(ctx context.Context, md goldmark.Markdown, source string, in parser.Context) (template.HTML, bool, error) {
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	if len(source) > maxMarkdown {
		return "", false, nil
	}
	doc := md.Parser().Parse(text.NewReader([]byte(source)), parser.WithContext(in))
	if in.Get(keyOverBudget) != nil {
		return "", false, nil
	}
	out := boundedHTML{limit: maxHTML(len(source))}
	err := md.Renderer().Render(&out, []byte(source), doc)
	if errors.Is(err, errOverBudget) {
		return "", false, nil
	}
	return template.HTML(out.String()), err == nil, err //nolint:gosec // only elements of messageRenderer and goldmark, which omits HTML
}

var errOverBudget = errors.New("the HTML exceeds its budget")

// boundedHTML rejects HTML beyond a limit.
type boundedHTML struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *boundedHTML) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, errOverBudget
	}
	return b.Buffer.Write(p)
}

// destinationBytes returns the size of the destinations and titles of links. References repeat those of their definition.
func destinationBytes(links []ast.Node) int {
	n := 0
	for _, link := range links {
		if link, ok := link.(*ast.Link); ok {
			n += len(link.Destination) + len(link.Title)
		}
	}
	return n
}

// newMessageParser returns a parser of Markdown with bounded nesting and links.
func newMessageParser() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(blockParsers()...), parser.WithInlineParsers(inlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
}

// blockParsers returns the default parsers of blocks, with bounded nesting.
func blockParsers() []util.PrioritizedValue {
	list := parser.DefaultBlockParsers()
	for i := range list {
		if p, ok := list[i].Value.(parser.BlockParser); ok {
			list[i].Value = nestedParser{p}
		}
	}
	return list
}

// nestedParser opens no quote or list beyond maxOpenBlocks. Their marks are then text.
type nestedParser struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (p nestedParser) Open(parent ast.Node, reader text.Reader, in parser.Context) (ast.Node, parser.State) {
	container := p.BlockParser == parser.NewBlockquoteParser() || p.BlockParser == parser.NewListParser()
	if container && len(in.OpenedBlocks()) >= maxOpenBlocks {
		return nil, parser.NoChildren
	}
	return p.BlockParser.Open(parent, reader, in)
}

// inlineParsers returns the default parsers within blocks, with bounded links.
func inlineParsers() []util.PrioritizedValue {
	list := parser.DefaultInlineParsers()
	for i := range list {
		if p, ok := list[i].Value.(closingParser); ok && p == parser.NewLinkParser() {
			list[i].Value = linkParser{p}
		}
	}
	return list
}

// closingParser is a parser that does something at the end of a block.
type closingParser interface {
	parser.InlineParser
	parser.CloseBlocker
}

// linkParser parses links until they exceed maxDestinations.
type linkParser struct{ closingParser }

// Parse implements parser.InlineParser.
func (p linkParser) Parse(parent ast.Node, block text.Reader, in parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if after, ok := bytes.CutPrefix(line, []byte("](")); ok {
		n := bytes.IndexByte(after, ' ')
		if n < 0 || after[0] == '<' {
			n = len(after)
		}
		searched, _ := in.Get(keyDestinations).(int)
		if searched+n > maxDestinations {
			in.Set(keyOverBudget, true)
			return nil
		}
		in.Set(keyDestinations, searched+n)
	}
	return p.closingParser.Parse(parent, block, in)
}

// tables adds tables of bounded size.
type tables struct{}

// Extend implements goldmark.Extender.
func (tables) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(
		parser.WithParagraphTransformers(util.Prioritized(tableTransformer{extension.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))
	cells := extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	m.Renderer().AddOptions(renderer.WithNodeRenderers(util.Prioritized(cells, 500)))
}

// tableTransformer makes no table with more cells than bytes. A row need not have all cells, which the parser adds.
type tableTransformer struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t tableTransformer) Transform(node *ast.Paragraph, reader text.Reader, in parser.Context) {
	lines, columns, size := node.Lines(), 0, 0
	for i := range lines.Len() {
		line := lines.At(i)
		size += line.Len()
		columns = max(columns, bytes.Count(line.Value(reader.Source()), []byte("|"))+1)
	}
	if columns*(lines.Len()-1) <= 2*size {
		t.ParagraphTransformer.Transform(node, reader, in)
	}
}
