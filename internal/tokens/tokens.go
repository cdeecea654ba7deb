package tokens

import (
	"fmt"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
)

const (
	// chunk is how many bytes are tokenised at a time: the pattern that splits
	// words backtracks over long runs, so its input must be bounded, and a
	// caller with a limit wants to stop early.
	chunk = 16 << 10
	// lookBack is how far from a chunk's end a harmless place to cut is sought.
	lookBack = 2 << 10
)

// codec loads the vocabulary, some 200,000 words, once and when first needed.
var codec = sync.OnceValue(func() tokenizer.Codec {
	c, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		panic(fmt.Sprintf("load the o200k vocabulary: %v", err)) // it is compiled in
	}
	return c
})

// Count returns how many tokens the text has. Past the first 16 KiB it may be
// over by one for each 16 KiB of text that offers no place to cut.
func Count(text string) int { return CountUpTo(text, math.MaxInt) }

// CountUpTo counts like Count but stops soon after it has passed the limit:
// the result is exact up to the limit and only known to be above it otherwise.
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
	n, err := codec().Count(text)
	if err != nil {
		// The splitter gave up on this piece; a byte is at least a token's worth.
		return len(text)
	}
	return n
}

// cut returns how many bytes of the text to tokenise next. It ends before a
// space that follows an ASCII letter or digit, where no token can reach over;
// where there is none, at the start of a character.
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
