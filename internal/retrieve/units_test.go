package retrieve

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMemoryUnits(t *testing.T) {
	t.Parallel()
	if got := MemoryUnits(" \n "); got != nil {
		t.Errorf("a blank text has units: %v", got)
	}
	want := []Unit{{Kind: Memory, Start: 0, End: 14, Lexical: "I like plums.", Dense: "(undated) I like plums."}}
	if d := cmp.Diff(want, MemoryUnits("I like plums.\n")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	long := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 60)
	units := MemoryUnits(long)
	if len(units) < 2 {
		t.Fatalf("a long text has %d units, want several", len(units))
	}
	for _, u := range units {
		if u.Dense != MemoryDense(long[u.Start:u.End]) {
			t.Errorf("Dense %q cannot be recomputed from the text", u.Dense)
		}
	}
}

func TestChatUnits(t *testing.T) {
	t.Parallel()
	at := time.Date(2023, 5, 8, 23, 30, 0, 0, time.FixedZone("", -3600))
	var messages []ChatMessage
	for _, text := range []string{"zero", "one", "two", "three", "four", " "} {
		messages = append(messages, ChatMessage{Sender: "human", Text: text, At: at})
	}
	messages[4].At = time.Time{}
	unit := func(seq, end int, lexical, dense string) Unit {
		return Unit{Kind: Chat, Group: 7, Seq: seq, End: end, Lexical: lexical, Parts: strings.Split(lexical, "\n"), Dense: dense}
	}
	titled := unit(0, 4, "Numbers\nzero\none\ntwo", "2023-05-09 human: zero")
	titled.Parts = []string{"Numbers\nzero", "one", "two"}
	tests := map[string]struct {
		reason  string
		indexes []int
		want    []Unit
		title   string
	}{
		"First":   {"no preceding message; the date is in UTC", []int{0}, []Unit{unit(0, 4, "zero\none\ntwo", "2023-05-09 human: zero")}, ""},
		"Middle":  {"two neighbors on either side", []int{2}, []Unit{unit(2, 3, "zero\none\ntwo\nthree\nfour", "2023-05-09 human: two")}, ""},
		"NoTime":  {"an unknown date is omitted", []int{4}, []Unit{unit(4, 4, "two\nthree\nfour\n ", "human: four")}, ""},
		"Blank":   {"a blank message has no units", []int{5}, nil, ""},
		"Outside": {"out of range", []int{-1, 6}, nil, ""},
		"Title": {
			"the first message is also found by the title", []int{0, 1},
			[]Unit{titled, unit(1, 3, "zero\none\ntwo\nthree", "2023-05-09 human: one")}, "Numbers",
		},
		"Blank title": {"a blank title is omitted", []int{0}, []Unit{unit(0, 4, "zero\none\ntwo", "2023-05-09 human: zero")}, " "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, ChatUnits(7, tc.title, messages, tc.indexes)); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// The title is added to the first message with text that is not a system message.
func TestTitled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		messages string // their senders; in upper case without text
		want     int
	}{{"", -1}, {"ha", 0}, {"sha", 1}, {"Hah", 1}, {"s", -1}, {"ssssh", 4}, {"sssssh", -1}} {
		var messages []ChatMessage
		for _, c := range tc.messages {
			m := ChatMessage{Sender: map[string]string{"s": "system", "h": "human", "a": "assistant"}[strings.ToLower(string(c))], Text: "text"}
			if c < 'a' {
				m.Text = " "
			}
			messages = append(messages, m)
		}
		if got := Titled(messages); got != tc.want {
			t.Errorf("Titled(%q) = %d, want %d", tc.messages, got, tc.want)
		}
	}
}

// Only the first of several units contains the title.
func TestChatUnitsOfLongFirstMessage(t *testing.T) {
	t.Parallel()
	units := ChatUnits(1, "Numbers", []ChatMessage{{Text: strings.Repeat("word ", 1000)}}, []int{0})
	for i, u := range units {
		if got := strings.Contains(u.Lexical, "Numbers"); len(units) < 2 || got != (i == 0) {
			t.Errorf("unit %d of %d contains the title: %t", i, len(units), got)
		}
	}
}

func TestChatUnitsOfLongMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 5000)
	units := ChatUnits(1, "", []ChatMessage{{Text: long}, {Text: "short"}, {Text: long}}, []int{1})
	if len(units) != 1 || len(units[0].Lexical) > 2*maxNeighbor+10 {
		t.Errorf("neighbors are not bounded: %d units", len(units))
	}
	if strings.ContainsRune(units[0].Lexical, '\ufffd') {
		t.Error("a neighbor is truncated within a character")
	}
}

func TestGroupOf(t *testing.T) {
	t.Parallel()
	seen := map[int64]string{}
	for _, name := range []string{"", "chatgpt", "claude", "custom", "ChatGPT"} {
		g := GroupOf(name)
		if g <= 0 || seen[g] != "" {
			t.Errorf("GroupOf(%q) = %d: not positive, or equal to that of %q", name, g, seen[g])
		}
		seen[g] = name
	}
	if got, want := GroupOf("chatgpt"), int64(9185783340037727416); got != want {
		t.Errorf("GroupOf(chatgpt) = %d, want %d: stored groups must not change", got, want)
	}
}

// Dated and undated memories are embedded alike, so that a date does not decide which is
// closer to a question.
func TestMemoryDenseReplacesTheDate(t *testing.T) {
	t.Parallel()
	const want = "(undated) My knee hurts."
	for _, text := range []string{"My knee hurts.", " My knee hurts.\n", "2026-05-03 My knee hurts.", "2026-05-03: My knee hurts.", "2026-05-03 - My knee hurts."} {
		if got := MemoryDense(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"2026-05-03", "20260503 My knee hurts.", "On 2026-05-03 my knee hurt."} {
		if got := MemoryDense(text); got != "(undated) "+text {
			t.Errorf("%q: %q, want the whole text", text, got)
		}
	}
}
