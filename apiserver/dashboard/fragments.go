package dashboard

import (
	"strings"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// fragment is a part of a text that matches a query or does not.
type fragment struct {
	Text  string
	Match bool
}

// fragments returns about n bytes of a text, around the first words of the query in it,
// with these words marked.
func fragments(query, text string, n int) []fragment {
	text = strings.TrimSpace(text)
	spans := retrieve.Highlight(query, text)
	from := 0
	if len(text) > n && len(spans) > 0 && spans[0].End > n/2 && spans[0].Start > n/4 {
		from = wordStart(text, spans[0].Start-n/4)
	}
	to := min(from+n, len(text))
	for !boundary(text, to) {
		to--
	}
	var out []fragment
	add := func(text string, match bool) {
		if text != "" {
			out = append(out, fragment{text, match})
		}
	}
	if from > 0 {
		add("… ", false)
	}
	for _, s := range spans {
		if s.Start < from || s.End > to {
			continue
		}
		add(text[from:s.Start], false)
		add(text[s.Start:s.End], true)
		from = s.End
	}
	if to < len(text) {
		add(strings.TrimRight(text[from:to], " \n")+" …", false)
	} else {
		add(text[from:to], false)
	}
	return out
}

// wordStart returns the start of the word after an offset, or of a character if there
// is no space nearby.
func wordStart(text string, at int) int {
	for !utf8.RuneStart(text[at]) {
		at--
	}
	if i := strings.IndexAny(text[at:min(at+40, len(text))], " \n"); i >= 0 {
		return at + i + 1
	}
	return at
}
