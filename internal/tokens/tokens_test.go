package tokens

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		want   int
	}{
		"Empty":     {"no text has no tokens", "", 0},
		"Sentence":  {"common words are one token each", "hello world", 2},
		"Emoji":     {"multi-byte characters are merged like any others", "Grüße 👋", 5},
		"Invalid":   {"bytes that are not UTF-8 do not stop the count", "\xff", 1},
		"NewLines":  {"runs of white space are one token", "a\n\n\n\nb", 3},
		"LongWords": {"a space before a word belongs to the word", strings.Repeat(" hello", 10000), 10000},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Count(tc.text); got != tc.want {
				t.Errorf("%s: Count = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// Cutting must not change the count of ordinary text.
func TestCountOfPiecesIsCountOfWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[A-Za-z]{1,12}[,.!?]?`), 3000, 6000).Draw(t, "words")
		text := strings.Join(words, " ")
		whole, err := vocabulary().Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Count(text); got != whole {
			t.Fatalf("Count = %d, in one piece %d", got, whole)
		}
	})
}

func TestCountUpToStops(t *testing.T) {
	t.Parallel()
	const limit = 20000
	texts := map[string]string{
		"OneLetter": strings.Repeat("a", 8<<20),
		"Spaces":    strings.Repeat(" ", 8<<20),
		"NewLines":  strings.Repeat("\n", 8<<20),
		"Noise":     strings.Repeat("\x80", 8<<20),
		"Prose":     strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1<<17),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			if got := CountUpTo(text, limit); got <= limit {
				t.Errorf("CountUpTo = %d, want more than %d", got, limit)
			}
			t.Logf("%d MiB in %v", len(text)>>20, time.Since(begin))
		})
	}
}
