package retrieve

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
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
	var found []Span
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
	return joinSpans(found)
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
