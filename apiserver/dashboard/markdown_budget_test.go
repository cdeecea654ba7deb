package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"runtime"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

const (
	// allocFactor and allocExtra are the maximum number of allocated bytes to render a text: a multiple of the text, and a constant.
	allocFactor = 2048
	allocExtra  = 1 << 20
)

// hostileMarkdown are families of texts of about n bytes that are expensive to render.
var hostileMarkdown = map[string]func(n int) string{
	"wide table":            func(n int) string { return table("-|", n/8) + strings.Repeat("\n|", n/4) },
	"aligned table":         func(n int) string { return table(":-:|", n/64) + strings.Repeat("\n"+strings.Repeat("|", n/64), 60) },
	"escaped cells":         func(n int) string { return "a|b\n-|-\n" + strings.Repeat("`\\|`|`\\|`\n", n/10) },
	"table per line":        func(n int) string { return strings.Repeat("a|b\n-|-\n", n/8) },
	"delimiter rows":        func(n int) string { return "a\n" + strings.Repeat("-|-\n", n/4) },
	"links":                 repeated("[a]("),
	"closed links":          repeated("[a](b)"),
	"link titles":           repeated("[a](b \""),
	"nested links":          func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("](a)", n/8) },
	"link in brackets":      func(n int) string { return strings.Repeat("[", n/2) + "[a](b)" + strings.Repeat("]", n/2) },
	"links in brackets":     func(n int) string { return strings.Repeat("[a](b)[", n/16) + strings.Repeat("]", n/2) },
	"brackets":              repeated("["),
	"closing brackets":      repeated("]"),
	"bracket pairs":         repeated("[]"),
	"nested brackets":       func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"images":                repeated("![a]("),
	"nested images":         func(n int) string { return strings.Repeat("![", n/4) + strings.Repeat("](a)", n/8) },
	"emphasis":              repeated("*a "),
	"closing emphasis":      repeated("a* "),
	"both emphasis":         repeated("*a_b*c_"),
	"mixed emphasis":        repeated("*_~~"),
	"emphasis by three":     repeated("a**b*c* "),
	"nested emphasis":       func(n int) string { return strings.Repeat("*a ", n/6) + strings.Repeat("b* ", n/6) },
	"nested emphasis _ *":   func(n int) string { return strings.Repeat("*a _b ", n/12) + strings.Repeat("b* c_ ", n/12) },
	"openers then closers":  func(n int) string { return strings.Repeat("_a ", n/6) + strings.Repeat("b* ", n/6) },
	"strikethrough":         repeated("~a "),
	"emphasis in brackets":  repeated("*a [ "),
	"emphasis and brackets": repeated("*[a]("),
	"quotes":                repeated("> "),
	"quotes per line":       func(n int) string { return strings.Repeat(strings.Repeat("> ", n/256)+"a\n", 128) },
	"quotes and lines":      func(n int) string { return strings.Repeat(">", n/2) + strings.Repeat("\n>", n/4) },
	"lists":                 repeated("- "),
	"lists and blank lines": func(n int) string { return strings.Repeat("- ", n/4) + "a" + strings.Repeat("\n", n/2) },
	"quoted lists":          func(n int) string { return strings.Repeat("> - ", n/8) + "a" + strings.Repeat("\n>", n/4) },
	"items":                 repeated("-\n"),
	"indented items":        indentedItems,
	"ordered lists":         repeated("1. "),
	"headings":              repeated("#\n"),
	"setext headings":       repeated("a\n-\n"),
	"rules":                 repeated("***\n"),
	"fences":                repeated("```\n"),
	"fences with info":      repeated("```a\n"),
	"fence of backticks":    func(n int) string { return "``` `" + strings.Repeat("[a](", n/4) },
	"fences in lists":       repeated("- ```\n"),
	"long info":             func(n int) string { return "```" + strings.Repeat("a", n-3) },
	"indented code":         repeated("    a\n\n"),
	"backticks":             backticks,
	"single backticks":      repeated("`a"),
	"html blocks":           repeated("<p>\n\n"),
	"html":                  repeated("<a>"),
	"open html":             repeated("<a "),
	"open comments":         repeated("<!--"),
	"comments in text":      repeated("a <!-- "),
	"processing":            repeated("a <?"),
	"declarations":          repeated("a <!A "),
	"cdata":                 repeated("a <![CDATA["),
	"attributes":            func(n int) string { return "a <a" + strings.Repeat(" b=c", n/4) },
	"entities":              repeated("&quot;"),
	"ampersands":            repeated("&"),
	"unknown entities":      repeated("&a"),
	"definitions":           repeated("[a]: b\n"),
	"distinct definitions":  definitions,
	"definition and uses":   func(n int) string { return "[a]: /" + strings.Repeat("b", n/2) + "\n\n" + strings.Repeat("[a]", n/6) },
	"web definition": func(n int) string {
		return "[a]: https://a.test/" + strings.Repeat("&", n/2) + "\n\n" + strings.Repeat("[a]", n/6)
	},
	"title of definition": func(n int) string {
		return "[a]: https://a.test/ \"" + strings.Repeat("&", n/2) + "\"\n\n" + strings.Repeat("[a]", n/6)
	},
	"open definitions": repeated("[a]: b \"\n"),
	"footnotes":        repeated("[^1]: a\n[^1] "),
	"autolinks":        repeated("<http://a.test>"),
	"open autolinks":   repeated("<http://a"),
	"bare links":       repeated("http://a.b "),
	"bare link":        func(n int) string { return "www.a.test/" + strings.Repeat("(", n/2) + strings.Repeat(")", n/2) },
	"mail":             repeated("a@b.c "),
	"mail prefixes":    repeated("a*"),
	"mail prefixes _":  repeated("a_b@"),
	"dots":             repeated("a.b.c@"),
	"long line":        repeated("a"),
	"spaces":           repeated(" "),
	"tabs":             repeated("\t"),
	"blank lines":      repeated("\n"),
	"hard breaks":      repeated("a\\\n"),
	"escapes":          repeated("\\*"),
	"backslashes":      repeated("\\"),
	"combining":        repeated("\u0301"),
	"null":             repeated("\x00"),
	"invalid":          repeated("\xff"),
	"citations":        repeated("[1]"),
	"citations in links": func(n int) string {
		return strings.Repeat("[", n/8) + strings.Repeat("[1]", n/8) + strings.Repeat("](http://a.b)", n/32)
	},
}

// TestMarkdownIsBounded: the HTML of any text and the memory that is allocated to render it are linear in the text.
// It does not run in parallel, because the allocations of other tests would be counted.
func TestMarkdownIsBounded(t *testing.T) { //nolint:paralleltest // see above
	for name, of := range hostileMarkdown {
		previous := 0
		for _, n := range []int{partBytes / 8, partBytes / 4, partBytes / 2, partBytes} {
			text := of(n)
			html, allocated := renderMeasured(t, text)
			if len(html) > htmlFactor*len(text)+htmlExtra {
				t.Errorf("%s: %d bytes of HTML for %d bytes", name, len(html), n)
			}
			if allocated > allocFactor*len(text)+allocExtra {
				t.Errorf("%s: %d bytes allocated for %d bytes", name, allocated, n)
			}
			if previous > 0 && allocated > 5*previous/2+allocExtra {
				t.Errorf("%s: %d bytes allocated for %d bytes, and %d for half of them", name, allocated, n, previous)
			}
			if previous = allocated; t.Failed() {
				break // longer texts would need more memory than the machine has
			}
		}
	}
}

// renderMeasured renders a text as message and as answer, and returns the longer HTML and the allocated bytes.
func renderMeasured(t *testing.T, text string) (template.HTML, int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	message := part{Message: chat.Message{Sender: chat.Assistant}, Text: text}
	if err := message.render(t.Context(), inEnglish, -1, -1, false); err != nil {
		t.Fatal(err)
	}
	answer, err := renderAnswer(t.Context(), inEnglish, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	html := message.HTML
	if len(answer) > len(html) {
		html = answer
	}
	return html, int((after.TotalAlloc - before.TotalAlloc) / 2)
}

// TestPartsOfAnyMessageAreBounded: whatever a message begins with, what is rendered at once is small, and nothing is lost.
func TestPartsOfAnyMessageAreBounded(t *testing.T) {
	t.Parallel()
	for name, of := range hostileMarkdown {
		text := of(300 << 10)
		shown := 0
		for _, screen := range screensOf([]chat.Message{{Sender: chat.Assistant, Text: text}}) {
			setFences(screen)
			for _, p := range screen {
				if n := len(p.Fence + p.Text); n > maxMarkdown {
					t.Fatalf("%s: %d bytes are rendered at once", name, n)
				}
				shown += len(p.Text)
			}
		}
		if shown != len(text) {
			t.Errorf("%s: the pages have %d of %d bytes", name, shown, len(text))
		}
	}
}

// A text that exceeds the budget is shown as it was written, with the highlight.
func TestTextOverBudgetIsShownAsWritten(t *testing.T) {
	t.Parallel()
	text := hostileMarkdown["web definition"](partBytes)
	p := part{Message: chat.Message{Sender: chat.Assistant}, Text: text}
	if err := p.render(t.Context(), inEnglish, 0, 3, false); err != nil {
		t.Fatal(err)
	}
	if p.HTML != "" || len(p.Blocks) != 1 || p.Blocks[0].Marked != "[a]" || p.Blocks[0].Marked+p.Blocks[0].After != text {
		t.Errorf("%d bytes of HTML and %d blocks", len(p.HTML), len(p.Blocks))
	}
	answer, err := renderAnswer(t.Context(), inEnglish, strings.Repeat("<b> ", partBytes), 2)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(answer), `<p class="verbatim">&lt;b&gt; &lt;b&gt;`) {
		t.Errorf("answer: %.60s", answer)
	}
}

// Destinations without an end are not searched for again and again. Thousands of links that end are links.
func TestDestinationsAreSearchedWithinTheBudget(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"links": false, "images": false, "emphasis and brackets": false, "closed links": true, "link titles": true} {
		text := hostileMarkdown[name](partBytes)
		if name == "closed links" {
			text = strings.Repeat("[a](https://a.test/) ", partBytes/21)
		}
		in := parser.NewContext()
		_, rendered, err := convert(t.Context(), inEnglish.markdown, text, in)
		if err != nil {
			t.Fatal(err)
		}
		if searched, _ := in.Get(keyDestinations).(int); rendered != want || searched > maxDestinations {
			t.Errorf("%s: rendered = %v, want %v, after a search of %d bytes", name, rendered, want, searched)
		}
	}
}

// A table whose rows have no cells is a text: the parser would add the missing ones.
func TestTableHasNoMoreCellsThanItsTextHasBytes(t *testing.T) {
	t.Parallel()
	source, nodes := table("-|", 64)+strings.Repeat("\n|", 64), 0
	doc := inEnglish.markdown.Parser().Parse(text.NewReader([]byte(source)))
	err := ast.Walk(doc, func(ast.Node, bool) (ast.WalkStatus, error) {
		nodes++
		return ast.WalkContinue, nil
	})
	if err != nil || nodes > 2*len(source) {
		t.Errorf("%d visits of nodes for %d bytes: %v", nodes, len(source), err)
	}
}

// Headings without a text have the most HTML for their size.
func TestHTMLOfATextIsLimited(t *testing.T) {
	t.Parallel()
	html, ok, err := renderMarkdown(t.Context(), inEnglish, hostileMarkdown["headings"](1<<10), -1, -1)
	if err != nil || ok {
		t.Errorf("%d bytes of HTML for 1 KiB: %v, want the text to be shown as it was written", len(html), err)
	}
}

// The parts of a block of code do not repeat its first line.
func TestPartsDoNotRepeatTheLineOfAFence(t *testing.T) {
	t.Parallel()
	message := "```" + strings.Repeat("a", 4<<10) + "\n" + strings.Repeat("b = 1\n", 6<<10)
	parts := screensOf([]chat.Message{{Sender: chat.Assistant, Text: message}})[0]
	setFences(parts)
	for _, p := range parts[1:] {
		if p.Fence != openFence {
			t.Errorf("part at %d begins with %d bytes, want %q", p.Start, len(p.Fence), openFence)
		}
	}
	if len(parts) < 3 {
		t.Errorf("%d parts, want several", len(parts))
	}
}

// A template writes no more than the limit of its page, whatever its data are.
func TestTemplateEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	out := boundedHTML{limit: 100}
	page := template.Must(template.New("").Parse(`{{range .}}<p>{{.}}</p>{{end}}`))
	if err := page.Execute(&out, make([]int, 1000)); !errors.Is(err, errOverBudget) || out.Len() > 100 {
		t.Errorf("%d bytes: %v, want %v", out.Len(), err, errOverBudget)
	}
}

func TestRenderingEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := part{Message: chat.Message{Sender: chat.Assistant}, Text: "text"}
	if err := p.render(ctx, inEnglish, -1, -1, false); !errors.Is(err, context.Canceled) {
		t.Errorf("message: %v, want %v", err, context.Canceled)
	}
	if _, err := renderAnswer(ctx, inEnglish, "text", 2); !errors.Is(err, context.Canceled) {
		t.Errorf("answer: %v, want %v", err, context.Canceled)
	}
}

// Tables without all cells are tables as long as the missing ones are few.
func TestIncompleteTableIsATable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a|b\n-|-\n1\n2", "| a | b | c |\n|---|---|---|\n| 1 |\n| 2 |", "a\n\n| b |\n|-|\n"} {
		got, _, err := renderMarkdown(t.Context(), inEnglish, text, -1, -1)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), "<table") {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func repeated(s string) func(int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)) }
}

func table(column string, n int) string {
	return "|" + strings.Repeat("a|", n) + "\n|" + strings.Repeat(column, n)
}

// backticks are runs of all lengths, so that no code span is closed.
func backticks(n int) string {
	var out strings.Builder
	for i := 1; out.Len() < n; i++ {
		out.WriteString(strings.Repeat("`", i) + "a")
	}
	return out.String()
}

func indentedItems(n int) string {
	var out strings.Builder
	for i := 0; out.Len() < n; i++ {
		out.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
	}
	return out.String()
}

func definitions(n int) string {
	var out strings.Builder
	for i := 0; out.Len() < n; i++ {
		fmt.Fprintf(&out, "[%d]: b\n", i)
	}
	return out.String()
}
