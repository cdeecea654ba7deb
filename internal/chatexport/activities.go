package chatexport

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// maxToken is the maximum size of a token of HTML, such as a style sheet. The attributes of a tag need 50 times its size.
	maxToken = 768 << 10
	// maxLines is the number of lines of a cell among which the time of the activity is searched.
	maxLines = 1 << 16
)

// activities converts the HTML form of "My Activity" to its JSON form.
func activities(r io.Reader, limits Limits) func(*bytes.Buffer) error {
	z := html.NewTokenizer(withoutMark(r))
	z.SetMaxBuf(maxToken)
	page := activityPage{z: z, limit: limits.Conversation}
	return func(out *bytes.Buffer) error {
		a, err := page.activity()
		if err != nil {
			return err
		}
		return a.encode(out, limits.Conversation)
	}
}

// activity is one entry of the page.
type activity struct {
	header string
	lines  []string // HTML of the first cell, split at line breaks outside of blocks
	size   int64
}

// encode appends the activity in its JSON form: the question precedes the line with
// the time, and the answer follows it.
func (a *activity) encode(out *bytes.Buffer, limit int64) error {
	object := map[string]string{"header": a.header}
	var at time.Time
	split := len(a.lines)
	for i, line := range a.lines {
		if text := plainText(line); timeLine.MatchString(text) && len(text) <= maxTimeLine {
			split, at = i, activityTime(text)
			break
		}
	}
	var title lines
	for _, line := range a.lines[:split] {
		title.add(plainText(line))
	}
	object["title"] = title.String()
	if !at.IsZero() {
		object["time"] = at.Format(time.RFC3339)
	}
	answer := ""
	if split < len(a.lines) {
		answer = strings.Join(a.lines[split+1:], "<br>")
	}
	if err := encode(out, object, limit); err != nil {
		return err
	}
	// The answer is a list of objects in the JSON form.
	out.Truncate(out.Len() - len("}\n"))
	out.WriteString(`,"safeHtmlItem":[{"html":`)
	quote(out, answer, limit)
	out.WriteString("}]}\n")
	return nil
}

// activityPage reads the entries of a page.
type activityPage struct {
	z      *html.Tokenizer
	limit  int64
	any    bool // an entry was found
	within bool // an entry is being read
}

// next returns the type of the next token; io.EOF, or io.ErrUnexpectedEOF within an
// entry.
func (p *activityPage) next() (html.TokenType, error) {
	kind := p.z.Next()
	if kind != html.ErrorToken {
		return kind, nil
	}
	err := p.z.Err()
	if errors.Is(err, io.EOF) && p.within {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, html.ErrBufferExceeded) {
		if !p.any {
			return kind, io.EOF // another page
		}
		return kind, fault.Wrap(fault.Invalid, err, "an element of the page is larger than %d KiB", maxToken>>10)
	}
	return kind, err
}

// activity reads the next entry.
func (p *activityPage) activity() (*activity, error) {
	for {
		kind, err := p.next()
		if err != nil {
			return nil, err
		}
		if kind == html.StartTagToken && strings.Contains(class(p.z.Token()), "outer-cell") {
			p.any, p.within = true, true
			a, err := p.entry()
			p.within = false
			return a, err
		}
	}
}

// class returns the class of a div, or "".
func class(t html.Token) string {
	if t.DataAtom == atom.Div {
		for _, attribute := range t.Attr {
			if attribute.Key == "class" {
				return attribute.Val
			}
		}
	}
	return ""
}

// entry reads an entry to its end: its header, and the first of its cells.
func (p *activityPage) entry() (*activity, error) {
	a := &activity{}
	for depth := 1; depth > 0; {
		kind, err := p.next()
		if err != nil {
			return nil, err
		}
		if kind != html.StartTagToken && kind != html.EndTagToken {
			continue
		}
		tag := p.z.Token()
		switch {
		case tag.DataAtom != atom.Div:
		case kind == html.EndTagToken:
			depth--
		case strings.Contains(class(tag), "header-cell"):
			var header activity
			if err := p.cell(&header); err != nil {
				return nil, err
			}
			a.header = plainText(strings.Join(header.lines, "<br>"))
		case strings.Contains(class(tag), "content-cell") && a.lines == nil:
			if err := p.cell(a); err != nil {
				return nil, err
			}
		default:
			depth++
		}
	}
	return a, nil
}

// cell reads a cell to its end. A cell over the limit is kept up to it and one more
// token, so that the scanner reports it as too large.
func (p *activityPage) cell(a *activity) error {
	var line strings.Builder
	within := nesting{divs: 1}
	for {
		if _, err := p.next(); err != nil {
			return err
		}
		raw := p.z.Raw()
		if a.size > p.limit {
			raw = nil
		}
		a.size += int64(len(raw))
		line.Write(raw)
		ends := within.token(p.z.Token())
		if within.divs > 0 && (!ends || len(a.lines) >= maxLines) {
			continue
		}
		a.lines = append(a.lines, line.String())
		line.Reset()
		if within.divs == 0 {
			return nil
		}
	}
}

// nesting is the number of open elements, and of divs, which end a cell.
type nesting struct{ divs, open int }

// token counts an element and reports whether it is a line break outside of others.
func (n *nesting) token(t html.Token) (ends bool) {
	div := 0
	if t.DataAtom == atom.Div {
		div = 1
	}
	switch {
	case t.DataAtom == atom.Br:
		return n.open == 0
	case t.Type == html.StartTagToken && !void[t.DataAtom]:
		n.open++
		n.divs += div
	case t.Type == html.EndTagToken && !void[t.DataAtom]:
		n.open = max(0, n.open-1)
		n.divs -= div
	}
	return false
}

// void are the elements without an end.
var void = map[atom.Atom]bool{atom.Br: true, atom.Img: true, atom.Hr: true, atom.Input: true, atom.Wbr: true, atom.Col: true}

// timeLine matches the line with the time of an activity in any language, which has
// at most maxTimeLine bytes.
var timeLine = regexp.MustCompile(`(^|\D)(20\d\d)(\D.*|)\d{1,2}:\d\d:\d\d`)

const maxTimeLine = 80

// activityLayouts are the forms of times that are read. Other languages write the
// month as a word.
var activityLayouts = []string{
	"Jan 2, 2006, 3:04:05 PM", "2 Jan 2006, 15:04:05", "2 Jan 2006, 3:04:05 PM", "2.1.2006, 15:04:05", "2/1/2006, 15:04:05",
	"2006/01/02 15:04:05", "2006-01-02 15:04:05", "2006. 1. 2. 15:04:05", "2006. 1. 2. PM 3:04:05",
}

// zones are the offsets of time zones in hours. Go knows no abbreviations.
var zones = map[string]float64{
	"UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3,
	"IST": 5.5, "SGT": 8, "HKT": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "BRT": -3,
}

// activityTime parses the time of an activity, zero if its form is unknown. Without
// a known time zone it is UTC.
func activityTime(text string) time.Time {
	text = strings.Join(strings.Fields(strings.NewReplacer("Sept ", "Sep ", "a.m.", "AM", "p.m.", "PM", " am", " AM", " pm", " PM").Replace(text)), " ")
	at, zone := text, ""
	if i := strings.LastIndexByte(text, ' '); i > 0 && !strings.ContainsAny(text[i:], ":") && text[i+1:] != "AM" && text[i+1:] != "PM" {
		at, zone = text[:i], text[i+1:]
	}
	if i := strings.LastIndexByte(text, ' '); i > 0 && (strings.HasPrefix(text[i+1:], "GMT") || strings.HasPrefix(text[i+1:], "UTC")) {
		at, zone = text[:i], text[i+1:]
	}
	for _, layout := range activityLayouts {
		if t, err := time.Parse(layout, at); err == nil {
			return known(t.Add(-offset(zone)))
		}
	}
	return time.Time{}
}

// offset returns the offset of a time zone.
func offset(zone string) time.Duration {
	if hours, ok := zones[zone]; ok {
		return time.Duration(hours * float64(time.Hour))
	}
	for _, layout := range []string{"-07:00", "-07", "-7"} {
		if t, err := time.Parse(layout, strings.TrimPrefix(strings.TrimPrefix(zone, "GMT"), "UTC")); err == nil {
			_, seconds := t.Zone()
			return time.Duration(seconds) * time.Second
		}
	}
	return 0
}
