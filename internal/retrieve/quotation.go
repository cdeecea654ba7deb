package retrieve

import (
	"regexp"
	"strings"
	"time"
)

// MemoryHeading is the heading of memories in packed excerpts, and MemorySender their sender.
const (
	MemoryHeading = "Memories"
	MemorySender  = "memory"
)

// Maximum length of Quotation.Opening, in bytes. That of a memory is longer, because many
// memories begin with the same words; that of a message may exceed none of its pieces.
const (
	maxOpening       = 40
	maxMemoryOpening = 100
)

// Quotation is a passage that looks like a line of Packed.Content: "[1] human: …" below
// a heading.
type Quotation struct {
	Sender string    // MemorySender for a memory
	Day    time.Time // that the heading names; zero for a memory
	// Opening is the beginning of the quoted text. A piece of the original begins with it,
	// after white space.
	Opening string

	text    string // that contains the passage
	heading Span   // the line of the heading in text
	start   int    // of the passage in text
	quoted  int    // where the quoted text begins in text
}

var (
	quotedLine    = regexp.MustCompile(`(?m)^\[\d+\] (human|assistant|system|tool|memory): `)
	quotedHeading = regexp.MustCompile(`^.+ \((\d{4}-\d{2}-\d{2})\)$`)
)

// Quotations returns the passages of a text that look like packed excerpts. Only Covers
// tells whether one quotes an original.
func Quotations(text string) []Quotation {
	if !strings.Contains(text, "\n[") {
		return nil
	}
	var out []Quotation
	var q Quotation
	for _, at := range quotedLine.FindAllStringSubmatchIndex(text, -1) {
		if next, ok := headed(text, at[0]); ok {
			q = next
		}
		q.Sender, q.start, q.quoted = text[at[2]:at[3]], at[0], at[1]
		q.Opening = opening(text[at[1]:], maxOpening)
		if q.Sender == MemorySender {
			q.Opening = opening(text[at[1]:], maxMemoryOpening)
		}
		if q.Opening != "" && q.heading.End > 0 && q.Day.IsZero() == (q.Sender == MemorySender) {
			out = append(out, q)
		}
	}
	return out
}

// headed returns the heading above a line; false if the line above is none.
func headed(text string, line int) (Quotation, bool) {
	if line == 0 {
		return Quotation{}, false
	}
	q := Quotation{text: text, heading: Span{strings.LastIndexByte(text[:line-1], '\n') + 1, line - 1}}
	above := strings.TrimSuffix(text[q.heading.Start:q.heading.End], "\r")
	q.heading.End = q.heading.Start + len(above)
	if above == MemoryHeading {
		return q, true
	}
	m := quotedHeading.FindStringSubmatch(above)
	if m == nil {
		return Quotation{}, false
	}
	var err error
	q.Day, err = time.Parse(time.DateOnly, m[1])
	return q, err == nil
}

// opening returns the beginning of the first line of a quoted text, up to an ellipsis that may be Pack's.
func opening(text string, limit int) string {
	text, _, _ = strings.Cut(text[:floor(text, min(len(text), limit))], "\n")
	own := len(text) - len(strings.TrimLeft(text, ellipsis+" "))
	if n := strings.Index(text[own:], ellipsis); n > 0 {
		text = text[:own+n]
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, ""))
}

// Original is a stored text that Pack may have quoted.
type Original struct {
	Title  string
	Text   string
	Pieces []Span // its units; nil for the whole text
}

// Covers returns the parts of the text that repeat one of the originals: the passage, and
// its heading if it is the original's. There are none if Pack quotes none of them so.
func (q Quotation) Covers(originals []Original) []Span {
	var heading []Span
	end := 0
	for _, o := range originals {
		n := 0
		for pieces := o.pieces(); len(pieces) > 0; pieces = pieces[1:] {
			n = max(n, quotes(q.text[q.quoted:], pieces))
		}
		unquoted, _, _ := strings.Cut(q.text[q.quoted+n:], "\n")
		if n == 0 || strings.TrimSpace(unquoted) != "" {
			continue
		}
		end = max(end, q.quoted+n)
		if q.text[q.heading.Start:q.heading.End] == (Excerpt{Title: o.Title, At: q.Day}).heading() {
			heading = []Span{q.heading}
		}
	}
	if end == 0 {
		return nil
	}
	return append(heading, Span{q.start, end})
}

func (o Original) pieces() []string {
	if o.Pieces == nil {
		return []string{strings.TrimSpace(o.Text)}
	}
	var out []string
	for _, s := range o.Pieces {
		if piece := strings.TrimSpace(o.Text[s.Start:s.End]); piece != "" {
			out = append(out, piece)
		}
	}
	return out
}

// quotes returns how many bytes of a text merge wrote for the first piece and some of the
// following ones.
func quotes(text string, pieces []string) int {
	n := shownLength(text, pieces[0])
	for pieces = pieces[1:]; n > 0; {
		length, used := continued(text[n:], pieces)
		if length == 0 {
			break
		}
		n, pieces = n+length, pieces[used:]
	}
	return n
}

// continued returns how many bytes of a text merge wrote for another piece, with the gap
// before it, and the number of pieces up to it.
func continued(text string, pieces []string) (n, used int) {
	for i, piece := range pieces {
		gap := " " + ellipsis + " "
		if i == 0 {
			gap = " "
		}
		if afterGap, ok := strings.CutPrefix(text, gap); ok {
			if n := shownLength(afterGap, piece); n > 0 {
				return len(gap) + n, i + 1
			}
		}
	}
	return 0, 0
}

// shownLength returns the length of the piece at the beginning of a text, complete or
// truncated with an ellipsis; 0 if the text does not begin with it.
func shownLength(text, piece string) int {
	n := 0
	for n < min(len(text), len(piece)) && text[n] == piece[n] {
		n++
	}
	if n == len(piece) {
		return n
	}
	if at := strings.LastIndex(text[:min(n+len(ellipsis), len(text))], ellipsis); at > 0 {
		return at + len(ellipsis)
	}
	return 0
}
