package embed

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The range of composed Hangul syllables.
const hangulFirst, hangulLast = 0xAC00, 0xD7A3

// appendNormalized appends the result of BERT's normalizer for one character: nothing
// for control characters, one space for any white space, spaces around a Chinese
// character, otherwise the lower-case letters without their accents.
//
// It works character by character, so that only the tokens in use of a long text are
// processed. Only canonical reordering of marks needs more context, and the marks it moves
// are dropped here.
func appendNormalized(dst []rune, r rune) []rune {
	switch {
	case r < utf8.RuneSelf && r > ' ' && r != 0x7f:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, r)
	case isSpace(r):
		return append(dst, ' ')
	case r < ' ' || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return dst
	}
	chinese := isChinese(r)
	if chinese {
		dst = append(dst, ' ')
	}
	dst = appendLetters(dst, r)
	if chinese {
		dst = append(dst, ' ')
	}
	return dst
}

// appendLetters appends the canonical decomposition of r in lower case without
// its non-spacing marks, which are the accents.
func appendLetters(dst []rune, r rune) []rune {
	var buffer [utf8.UTFMax]byte
	encoded := buffer[:utf8.EncodeRune(buffer[:], r)]
	if r >= hangulFirst && r <= hangulLast { // not in the tables, being regular
		return append(dst, []rune(string(norm.NFD.Bytes(encoded)))...)
	}
	parts := norm.NFD.Properties(encoded).Decomposition()
	if parts == nil {
		parts = encoded
	}
	for len(parts) > 0 {
		d, size := utf8.DecodeRune(parts)
		parts = parts[size:]
		if !unicode.Is(unicode.Mn, d) {
			dst = append(dst, unicode.ToLower(d))
		}
	}
	return dst
}

// isSpace reports white space as BERT defines it. The control characters that
// Unicode also counts as white space (vertical tab, form feed, next line) are
// dropped as control characters instead.
func isSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r':
		return true
	case '\v', '\f', 0x85:
		return false
	}
	return unicode.IsSpace(r)
}

// isChinese reports the CJK ideograph blocks that BERT splits into single
// characters; kana and Hangul are not among them.
func isChinese(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xF900 <= r && r <= 0xFAFF:
		return true
	}
	return 0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B73F || 0x2B740 <= r && r <= 0x2B81F ||
		0x2B920 <= r && r <= 0x2CEAF || 0x2F800 <= r && r <= 0x2FA1F
}

// isPunctuation reports whether a character is a separate word: Unicode punctuation, and
// every printable ASCII character that is not a letter, digit or space.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' && r < 0x7f
	}
	return unicode.IsPunct(r)
}
