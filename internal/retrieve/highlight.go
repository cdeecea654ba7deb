package retrieve

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Highlight returns the parts of a text that contain the terms of a question, in order
// and without overlap: whole words, or pairs of characters in scripts without spaces.
func Highlight(question, text string) []Span {
	wanted := map[string]bool{}
	for _, t := range terms(question) {
		wanted[t] = true
	}
	if len(wanted) == 0 {
		return nil
	}
	if norm.NFC.IsNormalString(text) {
		return joinSpans(highlight(wanted, text))
	}
	c := compose(text)
	found := highlight(wanted, c.text)
	for i, s := range found {
		found[i] = Span{c.starts[s.Start], c.ends[s.End-1]}
	}
	return joinSpans(found)
}

// highlight returns the parts of a text with composed characters that are one of the terms.
func highlight(wanted map[string]bool, text string) (found []Span) {
	for _, w := range wordSpans(text) {
		word := text[w.Start:w.End]
		EachRun(word, func(s Script, part Span) {
			run, at := word[part.Start:part.End], w.Start+part.Start
			if s == NoScript && wanted[stem(strings.ToLower(run))] {
				found = append(found, Span{at, at + len(run)})
			}
			if s == NoScript {
				return
			}
			for _, p := range s.Indexed(run) {
				if wanted[run[p.Start:p.End]] {
					found = append(found, Span{at + p.Start, at + p.End})
				}
			}
		})
	}
	return found
}

// composed is a text with composed characters, with the part of the original that each byte stands for: a character with its marks if that differs.
type composed struct {
	text         string
	starts, ends []int
}

func compose(text string) (c composed) {
	var b strings.Builder
	for at := 0; at < len(text); {
		end := at + norm.NFC.NextBoundaryInString(text[at:], true)
		part := norm.NFC.String(text[at:end])
		for i := range len(part) {
			start, end := at, end
			if part == text[at:end] {
				start, end = at+i, at+i+1
			}
			c.starts, c.ends = append(c.starts, start), append(c.ends, end)
		}
		b.WriteString(part)
		at = end
	}
	c.text = b.String()
	return c
}

// joinSpans sorts spans and joins those that touch.
func joinSpans(spans []Span) (out []Span) {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && out[last].End >= s.Start {
			out[last].End = max(out[last].End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// wordSpans returns the words of a text.
func wordSpans(text string) []Span {
	var out []Span
	start := -1
	for i, r := range text {
		switch inWord := isWordRune(r); {
		case inWord && start < 0:
			start = i
		case !inWord && start >= 0:
			out, start = append(out, Span{start, i}), -1
		}
	}
	if start >= 0 {
		out = append(out, Span{start, len(text)})
	}
	return out
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}
