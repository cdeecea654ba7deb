package retrieve

import (
	"unicode"
	"unicode/utf8"
)

// Script is a script whose words are not separated reliably. Texts in it are searched by their
// pairs of characters. Pairs are the usual compromise: they need no dictionary, and are
// rare enough to rank by. A character of Unspaced includes its vowel signs and tone marks.
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
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.IsPunct(r):
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

// character returns the length of the first character of a run of the script.
func (s Script) character(run string) int {
	_, n := utf8.DecodeRuneInString(run)
	for s == Unspaced && n < len(run) {
		r, size := utf8.DecodeRuneInString(run[n:])
		if !unicode.Is(unicode.M, r) {
			break
		}
		n += size
	}
	return n
}

// Indexed returns the words by which a run of the script is found: its pairs and single
// characters.
func (s Script) Indexed(run string) []Span {
	var out []Span
	before := -1
	for at := 0; at < len(run); {
		n := s.character(run[at:])
		if s.isWord(run[at:at+n]) || n == len(run) && s != Hiragana {
			out = append(out, Span{at, at + n})
		}
		if before >= 0 {
			out = append(out, Span{before, at + n})
		}
		before, at = at, at+n
	}
	return out
}

// isWord reports whether a character of the script may be a word that is part of a longer run. Single kana are particles and
// endings, and only with a vowel sign can a consonant of Unspaced be a syllable.
func (s Script) isWord(character string) bool {
	return s == Han || s == Hangul || s == Unspaced && utf8.RuneCountInString(character) > 1
}

// Queried returns the words that are looked up for a run of the script: its pairs, and
// single characters where no pair would find them.
func (s Script) Queried(run string) []Span {
	var out []Span
	first := s.character(run)
	// The second syllable of a short Korean word may be a particle.
	if n := len(run); n == first && s != Hiragana || s == Hangul && first < n && n == first+s.character(run[first:]) {
		out = append(out, Span{0, first})
	}
	for before, at := 0, first; at < len(run); {
		n := s.character(run[at:])
		out = append(out, Span{before, at + n})
		before, at = at, at+n
	}
	return out
}
