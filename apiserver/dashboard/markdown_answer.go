package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// citationOf matches a citation at the beginning of a text.
var citationOf = regexp.MustCompile(`^\[([0-9]{1,3}(?:, [0-9]{1,3})*)\]`)

// keySources is the context key of the number of sources of an answer.
var keySources = parser.NewContextKey()

// newAnswerParser returns a parser of Markdown with citations. An answer has no reference
// definitions: "[1]: text" is a citation with a text.
func newAnswerParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(blockParsers()...),
		parser.WithInlineParsers(append(inlineParsers(), util.Prioritized(citationParser{}, 150))...), // before links, after code
	)
}

// renderAnswer returns an answer as HTML. Its citations are links to the sources. An answer
// that exceeds the budget is shown as it was written.
func renderAnswer(ctx context.Context, l *locale, answer string, sources int) (template.HTML, error) {
	in := parser.NewContext()
	in.Set(keySources, sources)
	in.Set(keyFrom, -1)
	out, ok, err := convert(ctx, l.answers, answer, in)
	if err != nil || ok {
		return out, err
	}
	return template.HTML(`<p class="verbatim">` + template.HTMLEscapeString(answer) + "</p>"), nil //nolint:gosec // escaped
}

// citation is a list of sources in an answer, such as [1] or [2, 5].
type citation struct {
	ast.BaseInline
	sources []int
}

var kindCitation = ast.NewNodeKind("Citation")

// Kind implements ast.Node.
func (*citation) Kind() ast.NodeKind { return kindCitation }

// Dump implements ast.Node.
func (c *citation) Dump(source []byte, level int) {
	ast.DumpHelper(c, source, level, map[string]string{"Sources": fmt.Sprint(c.sources)}, nil)
}

// citationParser parses citations of existing sources.
type citationParser struct{}

// Trigger implements parser.InlineParser. The parser of links would consume "![".
func (citationParser) Trigger() []byte { return []byte{'[', '!'} }

// Parse implements parser.InlineParser.
func (citationParser) Parse(_ ast.Node, block text.Reader, ctx parser.Context) ast.Node {
	line, segment := block.PeekLine()
	sources, _ := ctx.Get(keySources).(int)
	if line[0] == '!' {
		if cited, _ := citedIn(line[1:], sources); len(cited) == 0 {
			return nil
		}
		block.Advance(1)
		return ast.NewTextSegment(segment.WithStop(segment.Start + 1))
	}
	cited, length := citedIn(line, sources)
	if len(cited) == 0 {
		return nil
	}
	block.Advance(length)
	return &citation{sources: cited}
}

// citedIn returns the sources of the citation at the beginning of a text, and the length of
// the citation. It returns none if one of them does not exist.
func citedIn(line []byte, sources int) (cited []int, length int) {
	found := citationOf.FindSubmatch(line)
	if found == nil {
		return nil, 0
	}
	for number := range strings.SplitSeq(string(found[1]), ", ") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > sources {
			return nil, 0
		}
		cited = append(cited, n)
	}
	return cited, len(found[0])
}

// citation renders links to the sources, or text within another link.
func (r messageRenderer) citation(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	c, ok := node.(*citation)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	linked := false
	for parent := node.Parent(); parent != nil; parent = parent.Parent() {
		linked = linked || parent.Kind() == ast.KindLink
	}
	for i, n := range c.sources {
		if i > 0 {
			_ = w.WriteByte(' ')
		}
		number := strconv.Itoa(n)
		if linked {
			_, _ = w.WriteString("[" + number + "]")
			continue
		}
		_, _ = w.WriteString(`<a class="cite" href="#s` + number + `" aria-label="`)
		_, _ = w.Write(util.EscapeHTML([]byte(r.text("Source %d", n))))
		_, _ = w.WriteString(`">` + number + "</a>")
	}
	return ast.WalkContinue, nil
}
