package memory

import (
	"regexp"
	"strings"
)

// Repeat is a text that a new memory may repeat: its own without decorations.
type Repeat struct {
	Text string
	Day  string // date that was removed, YYYY-MM-DD: the day on which the repeated memory was created; "" for none
}

// maxDecorations limits the decorations that are removed from a text.
const maxDecorations = 8

// Decorations that a recall or the assistant that uses it adds to a memory: the heading and
// the line of recalled content, list items and block quotes, and dates.
var (
	decoration = regexp.MustCompile(`^(?:Memories\r?\n|\[\d+\] (?:memory: )?|memory: |[-*•–] |\d{1,3}[.)] |> ?)`)
	dateAhead  = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})(?: [-–—]|[:,.])? `)
	dateBehind = regexp.MustCompile(` \((\d{4}-\d{2}-\d{2})\)$`)
)

var quotationMarks = [][2]string{{`"`, `"`}, {"'", "'"}, {"“", "”"}, {"„", "“"}, {"‘", "’"}, {"«", "»"}, {"»", "«"}, {"「", "」"}}

// repeats returns what a text may repeat, without one decoration, without two and so on.
func repeats(text string) []Repeat {
	var out []Repeat
	r := Repeat{Text: strings.TrimSpace(text)}
	for range maxDecorations {
		next := r.undecorated()
		if next == r || next.Text == "" {
			break
		}
		out, r = append(out, next), next
	}
	return out
}

// undecorated returns the text without its outermost decoration.
func (r Repeat) undecorated() Repeat {
	if m := decoration.FindString(r.Text); m != "" {
		r.Text = strings.TrimSpace(r.Text[len(m):])
		return r
	}
	for _, marks := range quotationMarks {
		inner, opens := strings.CutPrefix(r.Text, marks[0])
		if inner, closes := strings.CutSuffix(inner, marks[1]); opens && closes {
			r.Text = inner
			return r
		}
	}
	if r.Day != "" {
		return r
	}
	if m := dateAhead.FindStringSubmatch(r.Text); m != nil {
		return Repeat{strings.TrimSpace(r.Text[len(m[0]):]), m[1]}
	}
	if m := dateBehind.FindStringSubmatch(r.Text); m != nil {
		return Repeat{strings.TrimSuffix(r.Text, m[0]), m[1]}
	}
	return r
}
