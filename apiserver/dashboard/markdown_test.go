package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

func TestRenderMarkdown(t *testing.T) {
	t.Parallel()
	const code = `<div class="snippet"><button type="button" data-copy data-scripted hidden>Copy</button>`
	const link = ` rel="noopener noreferrer nofollow" target="_blank"`
	for name, tt := range map[string]struct {
		text     string
		from, to int
		want     string
	}{
		"headings":     {"# A\n#### B", -1, -1, `<p role="heading" aria-level="3" class="h1">A</p>` + "\n" + `<p role="heading" aria-level="3" class="h4">B</p>`},
		"line break":   {"one\ntwo", -1, -1, "<p>one<br>\ntwo</p>"},
		"code":         {"```sql\na < b;\n```", -1, -1, code + `<pre tabindex="0"><code>a &lt; b;` + "\n</code></pre></div>"},
		"link":         {"[Vienna](https://oebb.test)", -1, -1, `<p><a href="https://oebb.test"` + link + `>Vienna</a></p>`},
		"bare link":    {"see https://oebb.test/a.", -1, -1, `<p>see <a href="https://oebb.test/a"` + link + `>https://oebb.test/a</a>.</p>`},
		"script link":  {"[x](javascript:alert%281%29) <javascript:alert(1)>", -1, -1, "<p>x javascript:alert(1)</p>"},
		"own pages":    {"[x](/account/erase)", -1, -1, "<p>x</p>"},
		"image":        {"![A map](https://evil.test/p.png)", -1, -1, `<p><a href="https://evil.test/p.png"` + link + `>A map</a></p>`},
		"image only":   {"![](https://evil.test/p.png)", -1, -1, `<p><a href="https://evil.test/p.png"` + link + `>Image</a></p>`},
		"data image":   {"![x](data:image/png;base64,AAAA)", -1, -1, "<p>x</p>"},
		"HTML block":   {"<script>\nalert(1)\n</script>", -1, -1, `<p class="verbatim">&lt;script&gt;` + "\nalert(1)\n&lt;/script&gt;</p>"},
		"HTML in line": {"a <img src=x onerror=y> b", -1, -1, "<p>a &lt;img src=x onerror=y&gt; b</p>"},
		"highlight":    {"first\n\nsecond\n\nthird", 7, 20, "<p>first</p>\n" + `<p class="hit" id="found">second</p>` + "\n" + `<p class="hit">third</p>`},
		"list item":    {"- a\n- b", 6, 7, "<ul>\n<li>a</li>\n" + `<li class="hit" id="found">b</li>` + "\n</ul>"},
		"out of range": {"first", 7, 20, "<p>first</p>"},
		"table": {"| a | b |\n|---|--:|\n| 1 | 2 |", -1, -1, `<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>` + "\n<thead>\n<tr>\n<th>a</th>\n" +
			`<th align="right">b</th>` + "\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n" + `<td align="right">2</td>` + "\n</tr>\n</tbody>\n</table></div>"},
	} {
		got, _, err := renderMarkdown(t.Context(), inEnglish, tt.text, tt.from, tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, strings.TrimSpace(string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRenderAnswer(t *testing.T) {
	t.Parallel()
	cite := func(n int) string {
		return fmt.Sprintf(`<a class="cite" href="#s%d" aria-label="Source %d">%d</a>`, n, n, n)
	}
	const link = ` rel="noopener noreferrer nofollow" target="_blank"`
	for name, tt := range map[string]struct{ text, want string }{
		"emphasis":             {"By the **window** [1].", "<p>By the <strong>window</strong> " + cite(1) + ".</p>"},
		"list":                 {"- one [1]\n- two [2]", "<ul>\n<li>one " + cite(1) + "</li>\n<li>two " + cite(2) + "</li>\n</ul>"},
		"several sources":      {"Yes [1, 2].", "<p>Yes " + cite(1) + " " + cite(2) + ".</p>"},
		"unknown source":       {"Yes [1], not [3] [1, 3]", "<p>Yes " + cite(1) + ", not [3] [1, 3]</p>"},
		"exclamation mark":     {"Great![1]", "<p>Great!" + cite(1) + "</p>"},
		"image":                {"![1 map](https://evil.test/p.png)", `<p><a href="https://evil.test/p.png"` + link + `>1 map</a></p>`},
		"code":                 {"`a[1]`", "<p><code>a[1]</code></p>"},
		"reference definition": {"[1]: window", "<p>" + cite(1) + ": window</p>"},
		"emphasized":           {"**window [1]**", "<p><strong>window " + cite(1) + "</strong></p>"},
		"within a link":        {"[a [1]](https://oebb.test)", `<p><a href="https://oebb.test"` + link + `>a [1]</a></p>`},
		"HTML":                 {"<b>x</b> [1]", "<p>&lt;b&gt;x&lt;/b&gt; " + cite(1) + "</p>"},
		"script":               {"<script>alert(1)</script>", `<p class="verbatim">&lt;script&gt;alert(1)&lt;/script&gt;</p>`},
	} {
		got, err := renderAnswer(t.Context(), inEnglish, tt.text, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, strings.TrimSpace(string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// allowedAttributes are the elements of a rendered message with their attributes.
var allowedAttributes = map[string]string{
	"p": "class id role aria-level", "br": "", "hr": "", "ul": "", "ol": "start", "li": "class id", "blockquote": "", "strong": "", "em": "", "del": "",
	"code": "", "pre": "class id tabindex", "div": "class role aria-label tabindex", "button": "type data-copy data-scripted hidden",
	"a": "href rel target title", "table": "", "thead": "", "tbody": "", "tr": "", "th": "align class id", "td": "align class id",
}

// FuzzMarkdown: whatever a message contains, the page has only harmless elements.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"# a\n\n- b\n1. c\n\n> d\n\n```go\ne\n```\n\n| f | g |\n|:-:|---|\n| h | i |", "<script>alert(1)</script>", "[x](javascript:alert(1))",
		"![x](https://a.test/b.png)", "<a href='javascript:x' onclick=y>", "[x]( java\tscript:alert(1) )", "<https://a.test/\"onmouseover=x>", "&lt;script&gt;",
		"[a]: javascript:x 'y\" onclick=z'\n[a]", "`<b>`", "~~s~~ **b** *i*", "    indented <b>", strings.Repeat("> ", 400), strings.Repeat("[", 400), "<!-- x -->", "\x00\xff",
		"[x](https://a.test \"t' onclick=x\")", "mailto:a@b.test a@b.test www.a.test",
	} {
		f.Add(seed, 0, len(seed))
	}
	f.Fuzz(func(t *testing.T, text string, from, to int) {
		got, _, err := renderMarkdown(t.Context(), inEnglish, text, from, to)
		if err != nil {
			t.Fatal(err)
		}
		checkHTML(t, string(got), func(html.Token) bool { return false })
	})
}

// FuzzAnswer: whatever an answer contains, the page has only harmless elements and links to existing sources.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"**b** [1] and [999999999999]", "我对花生过敏[2]", "![1]", "[1](https://a.test)", "[1]: https://a.test", "[see [1]](https://a.test)", "`[1]`", "[1, 2] [1,2] [0]", "[[1]]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := renderAnswer(t.Context(), inEnglish, text, 3)
		if err != nil {
			t.Fatal(err)
		}
		checkHTML(t, string(got), func(token html.Token) bool { return citationLink.MatchString(token.String()) })
	})
}

// citationLink matches a link to one of three sources.
var citationLink = regexp.MustCompile(`^<a class="cite" href="#s([123])" aria-label="Source [123]">$`)

// checkHTML fails unless a rendered text has only harmless elements, or those for which expected returns true.
func checkHTML(t *testing.T, text string, expected func(html.Token) bool) {
	t.Helper()
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return
		}
		token := tokens.Token()
		if kind == html.CommentToken || kind == html.DoctypeToken {
			t.Fatalf("%q contains %s", text, token)
		}
		if (kind == html.StartTagToken || kind == html.SelfClosingTagToken) && !expected(token) {
			checkElement(t, token)
		}
	}
}

func checkElement(t *testing.T, token html.Token) {
	t.Helper()
	allowed, known := allowedAttributes[token.Data]
	if !known {
		t.Fatalf("element %s", token)
	}
	for _, a := range token.Attr {
		if !slices.Contains(strings.Fields(allowed), a.Key) {
			t.Fatalf("attribute of %s", token)
		}
		if scheme, _, _ := strings.Cut(strings.ToLower(a.Val), ":"); a.Key == "href" && !slices.Contains([]string{"http", "https", "mailto"}, scheme) {
			t.Fatalf("link %s", token)
		}
	}
}

// A part that begins within code is code, highlighted at the same text.
func TestPartsWithinCode(t *testing.T) {
	t.Parallel()
	line := "select * from people where name = 'x' -- " + strings.Repeat("y", 60) + "\n"
	text := "Look:\n```sql\n" + strings.Repeat(line, 2*partBytes/len(line)) + "```\nDone."
	screens := screensOf([]chat.Message{{Sender: chat.Assistant, Text: text}})
	var parts []part
	for _, s := range screens {
		parts = append(parts, s...)
	}
	setFences(parts)
	if len(parts) < 2 || parts[1].Fence != openFence {
		t.Fatalf("%d parts, the second is within %q", len(parts), parts[1].Fence)
	}
	if err := parts[1].render(t.Context(), inEnglish, 0, 10, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(parts[1].HTML), `<pre tabindex="0" class="hit" id="found"><code>select`) {
		t.Errorf("second part: %.300s", parts[1].HTML)
	}
}
