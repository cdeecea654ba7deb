package retrieve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var trip = Original{Title: "Night train", Text: "I like window seats. They are quiet."}

func TestQuotations(t *testing.T) {
	t.Parallel()
	const block = "Night train (2026-11-21)\n[1] human: I like window seats. They are quiet."
	cut := trip
	cut.Pieces = []Span{{0, 20}, {20, 36}}
	gap := Original{Title: "T", Text: "One. Two. Three.", Pieces: []Span{{0, 5}, {5, 10}, {10, 16}}}
	dots := Original{Title: "T", Text: "Well… I think—so."}
	for name, test := range map[string]struct {
		reason   string
		text     string
		original Original
		want     string // the text without what is covered
	}{
		"whole":              {"heading and line are covered", block, trip, ""},
		"prose":              {"the user's own words stay", "Look:\n\n" + block + "\n\nIs that so?", trip, "Look:|Is that so?"},
		"next line":          {"so do words on the next line", block + "\nIs that so?", trip, "Is that so?"},
		"same line":          {"a line with more words says something else", block + " And cheap.", trip, block + " And cheap."},
		"other words":        {"the text is not the original's", strings.Replace(block, "window", "aisle", 1), trip, strings.Replace(block, "window", "aisle", 1)},
		"other title":        {"a line that is not the original's heading stays", "About the " + block, trip, "About the Night train (2026-11-21)"},
		"no heading":         {"recalls write a heading", "\n[1] human: I like window seats. They are quiet.", trip, "[1] human: I like window seats. They are quiet."},
		"no date":            {"headings of messages have a date", "Night train\n[1] human: I like window seats. They are quiet.", trip, "Night train\n[1] human: I like window seats. They are quiet."},
		"no such day":        {"it must exist", strings.Replace(block, "11-21", "11-31", 1), trip, strings.Replace(block, "11-21", "11-31", 1)},
		"carriage returns":   {"lines may end like in Windows", strings.ReplaceAll(block, "\n", "\r\n") + "\r\nOK", trip, "OK"},
		"second piece":       {"recalls return pieces", "Night train (2026-11-21)\n[1] human: They are quiet.", cut, ""},
		"end of a piece":     {"a recall returns pieces from their beginning", "Night train (2026-11-21)\n[1] human: are quiet.", cut, "Night train (2026-11-21)\n[1] human: are quiet."},
		"truncated":          {"and truncates the last one", "Night train (2026-11-21)\n[1] human: I like…", cut, ""},
		"beginning":          {"only with an ellipsis", "Night train (2026-11-21)\n[1] human: I like", cut, "Night train (2026-11-21)\n[1] human: I like"},
		"adjacent pieces":    {"pieces of a message share a line", "T (2026-11-21)\n[1] human: One. Two. Three.", gap, ""},
		"gap":                {"with an ellipsis between them", "T (2026-11-21)\n[1] human: One. … Three.", gap, ""},
		"no gap":             {"unless they are adjacent", "T (2026-11-21)\n[1] human: One. Three.", gap, "T (2026-11-21)\n[1] human: One. Three."},
		"truncated gap":      {"a truncated piece may be followed by others", "T (2026-11-21)\n[1] human: One. Tw… Three.", gap, ""},
		"original ellipsis":  {"truncation is recognized after an ellipsis of the original", "T (2026-11-21)\n[1] human: Well…", dots, ""},
		"similar characters": {"characters are compared, not bytes", "T (2026-11-21)\n[1] human: Well… I think…", dots, ""},
		"memory":             {"memories have no date", "Memories\n[1] memory: Likes tea", Original{Title: MemoryHeading, Text: " Likes tea\n"}, ""},
		"dated memory":       {"a memory below the heading of a conversation was not recalled", "T (2026-11-21)\n[1] memory: Likes tea", Original{Text: "Likes tea"}, "T (2026-11-21)\n[1] memory: Likes tea"},
		"message as memory":  {"nor was a message below the heading of memories", "Memories\n[1] human: Likes tea", Original{Text: "Likes tea"}, "Memories\n[1] human: Likes tea"},
	} {
		m := ChatMessage{Text: test.text}
		for _, q := range Quotations(test.text) {
			m.Quoted = append(m.Quoted, q.Covers([]Original{test.original})...)
		}
		var unquoted []string
		for _, s := range m.pieces() {
			if piece := strings.TrimSpace(m.Text[s.Start:s.End]); piece != "" {
				unquoted = append(unquoted, piece)
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(unquoted, "|")); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, test.reason, diff)
		}
	}
}

// Whatever Pack writes is recognized, wherever a user pastes it, and nothing else is.
func TestPackedExcerptsAreQuotations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zß日—…]{1,12}[ .\n]`), 1, 300)
		texts := rapid.SliceOfN(rapid.Map(words, func(w []string) string { return strings.Join(w, "") }), 1, 6).Draw(t, "texts")
		var originals []Original
		var excerpts []Excerpt
		for i, text := range texts {
			o := Original{Title: fmt.Sprintf("Talk\n%d", i%2), Text: text, Pieces: Split(text)}
			originals = append(originals, o)
			for _, s := range o.Pieces {
				e := Excerpt{Owner: o.Title, Title: o.Title, Seq: i, Sender: "human", At: day.AddDate(0, 0, i%3), Text: text[s.Start:s.End], Start: s.Start, End: s.End}
				e.Score = rapid.Float64Range(0, 1).Draw(t, "score")
				excerpts = append(excerpts, e)
			}
		}
		content := Pack(excerpts, rapid.IntRange(10, 800).Draw(t, "budget"), wordCount).Content
		text := "I asked before:\n" + content + "\nWhat else?"
		m := ChatMessage{Text: text}
		for _, q := range Quotations(text) {
			m.Quoted = append(m.Quoted, q.Covers(originals)...)
		}
		want := "I asked before:\nWhat else?"
		if content == "" {
			want = "I asked before:\n\nWhat else?"
		}
		if got := m.ownText(); got != want {
			t.Fatalf("%q leaves %q", text, got)
		}
	})
}

// A repeated passage is in no unit: neither in those of its message nor, as a neighbor, in
// those of others.
func TestQuotedTextIsInNoUnit(t *testing.T) {
	t.Parallel()
	block := "Night train (2026-11-21)\n[1] human: I like window seats. They are quiet."
	quoting := ChatMessage{Sender: "human", Text: block + "\nWhich seat do I want?"}
	quoting.Quoted = []Span{{0, len(block)}}
	only := ChatMessage{Sender: "tool", Text: block, Quoted: []Span{{0, len(block)}}}
	messages := []ChatMessage{{Sender: "human", Text: "Hi."}, quoting, only, {Sender: "assistant", Text: "By the window."}}
	var got []string
	for _, u := range ChatUnits(1, "", messages, []int{0, 1, 2, 3}) {
		if strings.Contains(u.Lexical+u.Dense, "quiet") {
			t.Errorf("unit %+v", u)
		}
		got = append(got, fmt.Sprintf("%d: %s", u.Seq, messages[u.Seq].Text[u.Start:u.End]))
	}
	if diff := cmp.Diff([]string{"0: Hi.", "1: \nWhich seat do I want?", "3: By the window."}, got); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}
