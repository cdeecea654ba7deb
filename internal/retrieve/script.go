package retrieve

import (
	"unicode"
	"unicode/utf8"
)

// Script is a script whose words are not separated reliably. Texts in it are searched by their
// pairs of characters. Pairs are the usual compromise: they need no dictionary, and are
// rare enough to rank by.
type Script int

// The scripts. NoScript is that of all other characters.
const (
	NoScript Script = iota
	Han
	Hiragana
	Katakana
	Hangul
	Unspaced // Thai, Lao, Khmer and Burmese
)

// firstUnspaced is the first character that may belong to a Script.
const firstUnspaced = 0x0e00

// ScriptOf returns the script of a character.
func ScriptOf(r rune) Script {
	switch {
	case r < firstUnspaced:
		return NoScript
	case r == 'ー' || unicode.Is(unicode.Katakana, r):
		return Katakana
	case unicode.Is(unicode.Han, r): // includes 々
		return Han
	case unicode.Is(unicode.Hiragana, r):
		return Hiragana
	case unicode.Is(unicode.Hangul, r):
		return Hangul
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return Unspaced
	}
	return NoScript
}

// EachRun calls do with each part of a text whose characters have one script, or none.
func EachRun(text string, do func(s Script, part Span)) {
	start, current := 0, NoScript
	for i, r := range text {
		if s := ScriptOf(r); s != current {
			if i > start {
				do(current, Span{start, i})
			}
			start, current = i, s
		}
	}
	if start < len(text) {
		do(current, Span{start, len(text)})
	}
}

// Indexed returns the words by which a run of the script is found: its pairs and single
// characters.
func (s Script) Indexed(run string) []Span {
	alone := utf8.RuneCountInString(run) == 1
	var out []Span
	before := -1
	for i, r := range run {
		end := i + utf8.RuneLen(r)
		// Single kana are particles and endings.
		if s == Han || s == Hangul || alone && s != Hiragana {
			out = append(out, Span{i, end})
		}
		if before >= 0 {
			out = append(out, Span{before, end})
		}
		before = i
	}
	return out
}

// Queried returns the words that are looked up for a run of the script: its pairs, and
// single characters where no pair would find them.
func (s Script) Queried(run string) []Span {
	var out []Span
	_, first := utf8.DecodeRuneInString(run)
	// The second syllable of a short Korean word may be a particle.
	if n := utf8.RuneCountInString(run); n == 1 && s != Hiragana || n == 2 && s == Hangul {
		out = append(out, Span{0, first})
	}
	before := 0
	for i, r := range run[first:] {
		out = append(out, Span{before, first + i + utf8.RuneLen(r)})
		before = first + i
	}
	return out
}
