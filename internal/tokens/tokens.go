package tokens

import (
	"math"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

const (
	// chunk is the number of bytes tokenized at a time. It bounds the backtracking of
	// the pattern that splits words, and allows callers with a limit to stop early.
	chunk = 16 << 10
	// lookBack is the distance from the end of a chunk that is searched for a
	// boundary between tokens.
	lookBack = 2 << 10
)

// vocabulary loads about 200,000 words on first use. Only this one is compiled in; tokenizer.Get would add all others.
var vocabulary = sync.OnceValue(codec.NewO200kBase)

// Count returns the number of tokens in the text. Beyond 16 KiB the result can be too
// high by one for each 16 KiB without a boundary between tokens.
func Count(text string) int { return CountUpTo(text, math.MaxInt) }

// CountUpTo is like Count but stops soon after the limit. Results above the limit are
// not exact.
func CountUpTo(text string, limit int) int {
	total := 0
	for len(text) > 0 && total <= limit {
		n := cut(text)
		total += count(text[:n])
		text = text[n:]
	}
	return total
}

func count(text string) int {
	n, err := vocabulary().Count(text)
	if err != nil {
		// The splitter failed; the number of bytes is an upper bound.
		return len(text)
	}
	return n
}

// cut returns the number of bytes to tokenize next. The chunk ends before a space that
// follows an ASCII letter or digit, which no token spans, or otherwise at the start
// of a character.
func cut(text string) int {
	if len(text) <= chunk {
		return len(text)
	}
	for i := chunk; i > chunk-lookBack; i-- {
		if text[i] == ' ' && alphanumeric(text[i-1]) {
			return i
		}
	}
	for i := chunk; i > chunk-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return chunk
}

func alphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
