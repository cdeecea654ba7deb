package retrieve

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	sentence := "Every morning the old lighthouse keeper walks down to the harbour and counts the boats. "
	paragraph := strings.Repeat(sentence, 6)
	tests := map[string]struct {
		reason string
		text   string
		ends   []string // how each piece ends
	}{
		"Empty":      {"no pieces", "", nil},
		"Short":      {"one piece", "I moved to Leeds.", []string{"Leeds."}},
		"Paragraphs": {"split between paragraphs first", paragraph + "\n\n" + paragraph + paragraph, []string{"boats. \n\n", "boats. ", "boats. "}},
		"Sentences":  {"split after a sentence", strings.Repeat(sentence, 20), []string{"boats. ", "boats. ", "boats. "}},
		"Words":      {"split between words if there is no sentence", strings.Repeat("lighthouse ", 150), []string{"lighthouse ", "lighthouse ", "lighthouse "}},
		"Unbroken":   {"a string without word boundaries is split anyway", strings.Repeat("x9", 400), []string{"x9", "x9"}},
		"Chinese":    {"each character is a token, and sentences end without a space", strings.Repeat("今天天气很好。", 50), []string{"。", "。"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ends []string
			for i, s := range Split(tc.text) {
				piece := tc.text[s.Start:s.End]
				if i < len(tc.ends) && strings.HasSuffix(piece, tc.ends[i]) {
					ends = append(ends, tc.ends[i])
					continue
				}
				ends = append(ends, piece)
			}
			if d := cmp.Diff(tc.ends, ends); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

func TestSplitCoversTheText(t *testing.T) {
	t.Parallel()
	alphabet := []string{"a", "word", "1234567890", " ", "\n", "\n\n", ". ", "。", "漢", "한", "e\u0301", "👩‍🚀", "\xff", "https://x.test/a?b=c", "-", "Ünïcödé", "supercalifragilistic"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 1500).Draw(t, "text"), "")
		at := 0
		for _, s := range Split(text) {
			if s.Start != at || s.End <= s.Start {
				t.Fatalf("piece %v does not follow %d", s, at)
			}
			if s.End < len(text) && !utf8.RuneStart(text[s.End]) {
				t.Fatalf("piece %v splits a character", s)
			}
			if c := estimate(text[s.Start:s.End]); c > maxPiece {
				t.Fatalf("piece %v is estimated at %d tokens", s, c)
			}
			at = s.End
		}
		if at != len(text) {
			t.Fatalf("pieces end at %d of %d", at, len(text))
		}
	})
}

// estimate returns the number of tokens that Split assumes for a text.
func estimate(text string) int {
	sum := 0
	for at := 0; at < len(text); {
		end, cost := atom(text, at)
		sum += cost
		at = end
	}
	return sum
}

// A piece has at most a few kilobytes, also of characters that are no tokens: a piece of a message with a MiB of spaces had a
// MiB, and was returned by every search that found it.
func TestPiecesAreShort(t *testing.T) {
	t.Parallel()
	const most = 2 * maxPiece * longRun
	for _, run := range []string{" ", "\n", "\t", "\u00a0", "\u3000", "\u0301", "\u200b", "\u200d", "e\u0301", "\U000e0100", "x", "\u4e2d"} {
		text := "a" + strings.Repeat(run, 1<<20/len(run)) + "b"
		at := 0
		for _, s := range Split(text) {
			if s.Start != at || s.End-s.Start > most {
				t.Fatalf("a text of %q has the piece %d to %d after %d, want at most %d bytes", run, s.Start, s.End, at, most)
			}
			at = s.End
		}
		if at != len(text) {
			t.Errorf("the pieces of a text of %q end at %d of %d", run, at, len(text))
		}
	}
}
