package chatexport

import (
	"errors"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// plainText returns the text of HTML: a line per block, items with a dash, code in
// fences.
func plainText(source string) string {
	if !strings.ContainsAny(source, "<&") {
		return strings.TrimSpace(source)
	}
	var t htmlText
	for source != "" {
		source = t.read(source)
	}
	return strings.TrimSpace(t.b.String())
}

// read adds the text of HTML up to a token over maxToken, which it handles, and returns the rest.
func (t *htmlText) read(source string) string {
	z := html.NewTokenizer(strings.NewReader(source))
	z.SetMaxBuf(maxToken)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if errors.Is(z.Err(), html.ErrBufferExceeded) {
				return t.giant(source)
			}
			return ""
		case html.TextToken:
			t.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			t.tag(atom.Lookup(name), true)
		case html.EndTagToken:
			name, _ := z.TagName()
			t.tag(atom.Lookup(name), false)
		}
		source = source[len(z.Raw()):]
	}
}

// giant adds a text over maxToken, or omits a tag or comment over it, and returns what follows it.
func (t *htmlText) giant(source string) string {
	if markup.MatchString(source) {
		_, after, _ := strings.Cut(source[maxToken:], ">")
		return after
	}
	end := strings.IndexByte(source[1:], '<') + 1
	if end == 0 {
		end = len(source)
	}
	t.text(html.UnescapeString(source[:end]))
	return source[end:]
}

// markup matches the start of a tag or comment.
var markup = regexp.MustCompile(`^<[a-zA-Z/!?]`)

// htmlText is the text of HTML so far.
type htmlText struct {
	b    strings.Builder
	end  string // the last characters of b
	code bool   // within preformatted text
	skip bool   // within a style or script
}

func (t *htmlText) write(text string) {
	if text == "" {
		return
	}
	t.b.WriteString(text)
	t.end = (t.end + text)[max(0, len(t.end)+len(text)-2):]
}

// text adds a text; white space is one space, except in preformatted text.
func (t *htmlText) text(text string) {
	switch {
	case t.skip:
	case t.code:
		t.write(text)
	default:
		words := strings.Fields(text)
		if len(words) == 0 || text != strings.TrimLeft(text, " \t\r\n") {
			t.space()
		}
		t.write(strings.Join(words, " "))
		if len(words) > 0 && text != strings.TrimRight(text, " \t\r\n") {
			t.space()
		}
	}
}

// space adds a space between words.
func (t *htmlText) space() {
	if t.end != "" && !strings.HasSuffix(t.end, "\n") && !strings.HasSuffix(t.end, " ") {
		t.write(" ")
	}
}

// breaks ends the line, and adds an empty one before a block.
func (t *htmlText) breaks(n int) {
	for t.b.Len() > 0 && !strings.HasSuffix(t.end, strings.Repeat("\n", n)) {
		t.write("\n")
	}
}

func (t *htmlText) tag(tag atom.Atom, opens bool) {
	switch tag {
	case atom.Br:
		t.write("\n")
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table, atom.Blockquote:
		t.breaks(2)
	case atom.Div, atom.Ul, atom.Ol, atom.Tr, atom.Hr:
		t.breaks(1)
	case atom.Td, atom.Th:
		t.space()
	case atom.Li:
		t.breaks(1)
		if opens {
			t.write("- ")
		}
	case atom.Pre:
		t.breaks(1)
		t.write("```\n")
		t.code = opens
	case atom.Style, atom.Script:
		t.skip = opens
	}
}
