package postgres

import (
	"strings"
	"unicode"
)

// PostgreSQL's parser makes one word of text without spaces, so it would find a Chinese
// or Japanese memory by its whole sentences only, and a Korean one only with the same
// particles. Hence such text is split into its characters and pairs of characters before
// it is parsed, and queries into the longest of them. Pairs are the usual compromise: they
// need no dictionary, and are rare enough to rank by.

// script is a script whose words are not separated reliably.
type script int

const (
	noScript script = iota
	han
	hiragana
	katakana
	hangul
)

// firstAsian is below every character of the scripts.
const firstAsian = 0x1100

func scriptOf(r rune) script {
	switch {
	case r < firstAsian:
		return noScript
	case r == 'ー' || unicode.Is(unicode.Katakana, r):
		return katakana
	case unicode.Is(unicode.Han, r): // includes 々
		return han
	case unicode.Is(unicode.Hiragana, r):
		return hiragana
	case unicode.Is(unicode.Hangul, r):
		return hangul
	}
	return noScript
}

// indexedWords returns a text for the lexical index, with the pairs and single
// characters of Asian scripts as words.
func indexedWords(text string) string {
	return splitAsian(text, func(b *strings.Builder, s script, run []rune) {
		for i := range run {
			// Single kana are particles and endings.
			if s == han || s == hangul || len(run) == 1 && s == katakana {
				writeWord(b, run[i:i+1])
			}
			if i > 0 {
				writeWord(b, run[i-1:i+1])
			}
		}
	})
}

// queriedWords returns the text of a query, with pairs of characters of Asian scripts as
// words, and single ones where no pair would find them.
func queriedWords(text string) string {
	return splitAsian(text, func(b *strings.Builder, s script, run []rune) {
		// The second syllable of a short Korean word may be a particle.
		if len(run) == 1 && s != hiragana || len(run) == 2 && s == hangul {
			writeWord(b, run[:1])
		}
		for i := range run[1:] {
			writeWord(b, run[i:i+2])
		}
	})
}

func writeWord(b *strings.Builder, word []rune) {
	b.WriteByte(' ')
	for _, r := range word {
		b.WriteRune(r)
	}
}

// splitAsian replaces each run of characters of one script by what write writes.
func splitAsian(text string, write func(b *strings.Builder, s script, run []rune)) string {
	if strings.IndexFunc(text, func(r rune) bool { return scriptOf(r) != noScript }) < 0 {
		return text
	}
	var b strings.Builder
	var run []rune
	current := noScript
	flush := func() {
		if len(run) > 0 {
			write(&b, current, run)
			b.WriteByte(' ')
			run = run[:0]
		}
	}
	for _, r := range text {
		if s := scriptOf(r); s != current {
			flush()
			current = s
		}
		if current == noScript {
			b.WriteRune(r)
		} else {
			run = append(run, r)
		}
	}
	flush()
	return b.String()
}
