package chat

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// exported returns the state of a conversation in an export: minute is its time, and
// each message is an id and a text.
func exported(minute int, title string, messages ...string) Upsert {
	u := Upsert{ExternalID: "x", Platform: "chatgpt", Title: title, CreatedAt: noon, UpdatedAt: noon.Add(time.Duration(minute) * time.Minute)}
	for i := 0; i < len(messages); i += 2 {
		m := message(messages[i], messages[i+1])
		m.CreatedAt = noon.Add(time.Duration(i) * time.Second)
		u.Messages = append(u.Messages, m)
	}
	return u
}

// importAll applies exports in order to a conversation.
func importAll(c Change, exports ...Upsert) Change {
	for _, u := range exports {
		c = PlanExport(c.After, c.Messages, u, "id")
	}
	return c
}

// shown returns what a user sees of a conversation.
func shown(c Change) []string {
	out := []string{c.After.Title, Stamp(c.After.CreatedAt), Stamp(c.After.UpdatedAt)}
	for _, m := range c.Messages {
		out = append(out, fmt.Sprint(m.ExternalID, " ", m.Sender, " ", Stamp(m.CreatedAt), " ", m.Text))
	}
	return out
}

func TestPlanExportInBothOrders(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason       string
		older, newer Upsert
	}{
		"edited":      {"the newer title, time and text", exported(1, "Old", "a", "one"), exported(2, "New", "a", "1", "b", "two")},
		"regenerated": {"only the newer branch", exported(1, "T", "a", "one", "b", "two"), exported(2, "T", "a", "one", "c", "2", "d", "three")},
		"shortened":   {"messages that the newer export no longer shows are removed", exported(1, "T", "a", "one", "b", "two", "c", "three"), exported(2, "T", "a", "1")},
		"reordered":   {"the order of the newer export", exported(1, "T", "a", "one", "b", "two"), exported(2, "T", "b", "two", "a", "one")},
		"untitled":    {"a title that was removed", exported(1, "T", "a", "one"), exported(2, "", "a", "one")},
		"tie":         {"the newest message decides between equal times", exported(1, "T", "a", "one"), exported(1, "S", "a", "one", "b", "two")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := shown(importAll(Change{}, tc.newer))
			if diff := cmp.Diff(want, shown(importAll(Change{}, tc.older, tc.newer))); diff != "" {
				t.Errorf("%s, older file first (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(want, shown(importAll(Change{}, tc.newer, tc.older))); diff != "" {
				t.Errorf("%s, newer file first (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Messages that were sent online are newer than an older export, replaced by a newer
// one, and never removed.
func TestPlanExportKeepsMessagesSentOnline(t *testing.T) {
	t.Parallel()
	online := exported(5, "Online", "a", "sent", "b", "sent")
	for name, tc := range map[string]struct {
		reason  string
		exports []Upsert
		title   string
		want    []string
	}{
		"older export":  {"known messages stay, unknown ones are added", []Upsert{exported(1, "Old", "a", "one", "c", "three")}, "Online", []string{"sent", "sent", "three"}},
		"newer export":  {"known messages are replaced", []Upsert{exported(9, "New", "a", "one")}, "New", []string{"one", "sent"}},
		"older exports": {"only the newest export counts", []Upsert{exported(2, "Old", "d", "four"), exported(1, "Older", "c", "three")}, "Online", []string{"four", "sent", "sent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := importAll(Plan(Conversation{}, nil, online, "id"), tc.exports...)
			var got []string
			for _, m := range c.Messages {
				got = append(got, m.Text)
			}
			if c.After.Title != tc.title {
				t.Errorf("%s: title %q, want %q", tc.reason, c.After.Title, tc.title)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("sort", func(in []string) map[string]int { return counts(in) })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func counts(in []string) map[string]int {
	out := map[string]int{}
	for _, s := range in {
		out[s]++
	}
	return out
}

// What is sent online after an import follows the rules of Plan, and importing the
// same file again does not revert it.
func TestPlanExportAgainAfterOnline(t *testing.T) {
	t.Parallel()
	u := exported(5, "T", "a", "one", "b", "two")
	before := importAll(Change{}, u)
	sent := Plan(before.After, before.Messages, exported(6, "Sent", "b", "edited", "c", "three"), "id")
	again := PlanExport(sent.After, sent.Messages, u, "id")
	if again.Changed() {
		t.Errorf("the same export again changes the conversation (-before +after):\n%s", cmp.Diff(shown(sent), shown(again)))
	}
}

func genExport(t *rapid.T) Upsert {
	u := exported(rapid.IntRange(0, 4).Draw(t, "minute"), rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "title"))
	u.Messages = genMessages(t, "messages")
	for i := range u.Messages {
		u.Messages[i].CreatedAt = noon.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "at")) * time.Second)
	}
	return u
}

// Exports of one conversation have the same result in any order: the state in the
// newest one.
func TestPlanExportProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := rapid.SliceOfN(rapid.Custom(genExport), 1, 5).Draw(t, "exports")
		shuffled := rapid.Permutation(exports).Draw(t, "shuffled")
		if rapid.Bool().Draw(t, "repeat") {
			shuffled = append(shuffled, rapid.SampledFrom(exports).Draw(t, "again"))
		}
		want, got := importAll(Change{}, exports...), Change{}
		for _, u := range shuffled {
			next := PlanExport(got.After, got.Messages, u, "id")
			checkExport(t, next, got.Messages)
			if again := PlanExport(next.After, next.Messages, u, "id"); again.Changed() {
				t.Fatalf("the same export again changes:\n%s", cmp.Diff(shown(next), shown(again)))
			}
			got = next
		}
		if diff := cmp.Diff(shown(want), shown(got)); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
		for _, u := range exports {
			if got.After.UpdatedAt.Before(u.UpdatedAt) {
				t.Fatalf("updated at %v, want the newest, at least %v", got.After.UpdatedAt, u.UpdatedAt)
			}
		}
	})
}

// checkExport applies a change to the stored messages as the store does.
func checkExport(t *rapid.T, c Change, stored []Message) {
	rows := map[int]Message{}
	for i, m := range stored[:c.Kept] {
		rows[i] = m
	}
	for _, i := range append(append([]int{}, c.Replaced...), c.Added...) {
		rows[i] = c.Messages[i]
	}
	ids := map[string]bool{}
	for i, m := range c.Messages {
		if m.Index != i {
			t.Fatalf("message %d has the index %d", i, m.Index)
		}
		if diff := cmp.Diff(m, rows[i]); diff != "" {
			t.Fatalf("stored message %d (-want +got):\n%s", i, diff)
		}
		ids[m.ExternalID] = true
	}
	if len(rows) != len(c.Messages) {
		t.Fatalf("%d stored messages, want %d", len(rows), len(c.Messages))
	}
	if len(ids) != len(c.Messages) {
		t.Fatalf("%d ids of %d messages", len(ids), len(c.Messages))
	}
}
