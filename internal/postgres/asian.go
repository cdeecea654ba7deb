package postgres

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// PostgreSQL's parser makes one word of text without spaces, so it would find a Chinese,
// Japanese or Thai memory by its whole sentences only, and a Korean one only with the same
// particles. Hence such text is split into its characters and pairs of characters before
// it is parsed, and queries into the longest of them.

// indexedWords returns a text for the lexical index, with composed characters, and with the pairs and single
// characters of Asian scripts as words.
func indexedWords(text string) string {
	return splitAsian(norm.NFC.String(text), retrieve.Script.Indexed)
}

// maxQueried is the maximum length in bytes of a query that is parsed. PostgreSQL selects from its
// first 64 distinct words, and cannot parse texts with more than 1 MiB of them.
const maxQueried = 32 << 10

// queriedWords returns the beginning of a query, with composed characters, and with pairs of characters of Asian scripts as
// words, and single ones where no pair would find them.
func queriedWords(text string) string {
	if len(text) > maxQueried {
		text = strings.ToValidUTF8(text[:maxQueried], "") // the end may be part of a character
	}
	return splitAsian(norm.NFC.String(text), retrieve.Script.Queried)
}

// splitAsian replaces each run of characters of one script by its words.
func splitAsian(text string, words func(s retrieve.Script, run string) []retrieve.Span) string {
	if strings.IndexFunc(text, func(r rune) bool { return retrieve.ScriptOf(r) != retrieve.NoScript }) < 0 {
		return text
	}
	var b strings.Builder
	retrieve.EachRun(text, func(s retrieve.Script, part retrieve.Span) {
		run := text[part.Start:part.End]
		if s == retrieve.NoScript {
			b.WriteString(run)
			return
		}
		for _, w := range words(s, run) {
			b.WriteByte(' ')
			b.WriteString(run[w.Start:w.End])
		}
		b.WriteByte(' ')
	})
	return b.String()
}
