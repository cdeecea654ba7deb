package retrieve

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
	var out []Span
	for _, w := range wordSpans(text) {
		word := text[w.Start:w.End]
		if r, _ := utf8.DecodeRuneInString(word); isLetterAlone(r) {
			for _, p := range pairSpans(word) {
				if wanted[word[p.Start:p.End]] {
					out = appendSpan(out, Span{w.Start + p.Start, w.Start + p.End})
				}
			}
		} else if wanted[stem(strings.ToLower(word))] {
			out = appendSpan(out, w)
		}
	}
	return out
}

// appendSpan appends a span, or extends the last one if they touch.
func appendSpan(spans []Span, s Span) []Span {
	if last := len(spans) - 1; last >= 0 && spans[last].End >= s.Start {
		spans[last].End = s.End
		return spans
	}
	return append(spans, s)
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

// pairSpans returns the pairs of adjacent characters of a word, or the only character.
func pairSpans(word string) []Span {
	var out []Span
	before := -1
	for i, r := range word {
		if before >= 0 {
			out = append(out, Span{before, i + utf8.RuneLen(r)})
		}
		before = i
	}
	if len(out) == 0 {
		return []Span{{0, len(word)}}
	}
	return out
}
