package dashboard

import (
	"html/template"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// TestScreens: the pages of a conversation contain its whole text, each page is
// small, and screenWith finds the page of every offset.
func TestScreens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			word := rapid.SampledFrom([]string{"a", "word ", "<&>'\"", "line\n", "ß€𝄞"}).Draw(t, "word")
			return strings.Repeat(word, rapid.IntRange(0, 30000).Draw(t, "times"))
		}), 0, 6).Draw(t, "messages")
		messages := make([]chat.Message, len(texts))
		for i, text := range texts {
			messages[i] = chat.Message{Index: i, Text: text}
		}
		screens := screensOf(messages)
		got := make([]strings.Builder, len(texts))
		for n, screen := range screens {
			size := 0
			for _, p := range screen {
				if p.Start != got[p.Index].Len() {
					t.Fatalf("a part of message %d begins at %d, want %d", p.Index, p.Start, got[p.Index].Len())
				}
				got[p.Index].WriteString(p.Text)
				size += len(template.HTMLEscapeString(p.Text))
				if at := screenWith(screens, p.Index, p.Start); at != n+1 && p.Text != "" {
					t.Fatalf("place %d of message %d is on page %d, want %d", p.Start, p.Index, at, n+1)
				}
			}
			if size > screenBytes && len(screen) > 1 {
				t.Fatalf("a page of %d parts has %d bytes", len(screen), size)
			}
		}
		for i := range texts {
			if got[i].String() != texts[i] {
				t.Fatalf("message %d was changed", i)
			}
		}
	})
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	text := "Make one:\n```sql\ncreate index;\n```\nThen look."
	for name, tt := range map[string]struct {
		from, to int
		want     []block
	}{
		"no match":            {-1, -1, []block{{Before: "Make one:\n"}, {Code: true, Before: "create index;\n"}, {Before: "Then look."}}},
		"match across blocks": {5, 24, []block{{Before: "Make ", Marked: "one:\n", Anchor: true}, {Code: true, Marked: "create ", After: "index;\n"}, {Before: "Then look."}}},
		"match out of range":  {5, 2400, []block{{Before: "Make one:\n"}, {Code: true, Before: "create index;\n"}, {Before: "Then look."}}},
	} {
		if diff := cmp.Diff(tt.want, blocksOf(text, tt.from, tt.to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCitations(t *testing.T) {
	t.Parallel()
	want := []piece{{Text: "Yes "}, {Cite: 1}, {Text: ", not [3] "}, {Cite: 2}, {Text: ""}}
	if diff := cmp.Diff(want, piecesOf("Yes [1], not [3] [2]", 2)); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
}
