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

// TestFences: the fence of a part is that of the whole message before it, on every page.
func TestFences(t *testing.T) {
	t.Parallel()
	fenceOf := func(text string) string {
		open := ""
		for line := range strings.Lines(text) {
			switch {
			case !isFence(line):
			case open == "":
				open = openFence
			default:
				open = ""
			}
		}
		return open
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			var text strings.Builder
			for range rapid.IntRange(0, 8).Draw(t, "runs") {
				run := rapid.SampledFrom([]string{"a\n", "word ", " ", "`", "```\n", "\n```sql\n", "```sql", "\n   ", "\n", strings.Repeat("line of code\n", 100)}).Draw(t, "run")
				text.WriteString(strings.Repeat(run, rapid.SampledFrom([]int{1, 2, 3, 500, 20_000 / len(run), 50_000 / len(run)}).Draw(t, "times")))
			}
			return text.String()
		}), 1, 3).Draw(t, "messages")
		messages := make([]chat.Message, len(texts))
		for i, text := range texts {
			messages[i] = chat.Message{Index: i, Text: text}
		}
		for n, screen := range screensOf(messages) {
			setFences(screen)
			for _, p := range screen {
				if want := fenceOf(texts[p.Index][:p.Start]); p.Fence != want {
					t.Fatalf("page %d: offset %d of message %d is within %.40q, want %.40q", n+1, p.Start, p.Index, p.Fence, want)
				}
			}
		}
	})
}

// Each call scans only the lines that end after those of the previous calls.
func TestFencesAreScannedOnce(t *testing.T) {
	t.Parallel()
	f := fences{text: "a\n```go\nb\n```\nc"}
	for _, step := range []struct {
		end, scanned int
		open         string
	}{{0, 0, ""}, {4, 2, ""}, {5, 2, openFence}, {9, 8, openFence}, {12, 10, openFence}, {13, 10, ""}, {14, 14, ""}, {15, 14, ""}} {
		if open := f.openAt(step.end); open != step.open || f.scanned != step.scanned {
			t.Errorf("after %d bytes: code of %q and %d bytes scanned, want %q and %d", step.end, open, f.scanned, step.open, step.scanned)
		}
	}
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
