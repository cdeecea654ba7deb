package importer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

var noon = time.Date(2025, 5, 9, 12, 0, 0, 0, time.UTC)

func upsert(id string, texts ...string) chat.Upsert {
	u := chat.Upsert{ExternalID: id, Platform: "claude"}
	for i, text := range texts {
		u.Messages = append(u.Messages, chat.Message{ExternalID: string(rune('a' + i)), Sender: chat.Human, Text: text})
	}
	return u
}

func TestEntryPlan(t *testing.T) {
	t.Parallel()
	created := noon.AddDate(-1, 0, 0)
	stored := chat.PlanExport(chat.Conversation{}, nil, upsert("x", "one").WithDefaultTimes(created), "old")
	for name, tc := range map[string]struct {
		reason string
		entry  Entry
		before chat.Change
		want   EntryOutcome
		check  func(chat.Conversation) bool
	}{
		"new": {"missing times are the start of the import", Entry{Upsert: upsert("x", "one")}, chat.Change{}, EntryImported,
			func(c chat.Conversation) bool {
				return c.ID == "new" && c.Status == chat.Blocked && c.CreatedAt.Equal(noon)
			}},
		"again": {"missing times are those of the conversation", Entry{Upsert: upsert("x", "one")}, stored, EntryUnchanged,
			func(c chat.Conversation) bool { return c == stored.After }},
		"updated": {"a new message", Entry{Upsert: upsert("x", "one", "two")}, stored, EntryUpdated,
			func(c chat.Conversation) bool { return c.ID == "old" && c.MessageCount == 2 }},
		"restored": {"a restored conversation keeps its id and flags",
			Entry{Upsert: upsert("x", "one"), Restored: &Restored{ID: "was", Excluded: true, Pinned: true}}, chat.Change{}, EntryImported,
			func(c chat.Conversation) bool { return c.ID == "was" && c.Status == chat.Excluded && c.Pinned }},
		"restored into existing": {"an existing conversation keeps its id and flags",
			Entry{Upsert: upsert("x", "one"), Restored: &Restored{ID: "was", Excluded: true, Pinned: true}}, stored, EntryUnchanged,
			func(c chat.Conversation) bool { return c == stored.After }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tc.entry.Plan(tc.before.After, tc.before.Messages, "new", noon)
			if got := ResultOf(tc.entry, c).Outcome; got != tc.want {
				t.Errorf("%s: outcome %s, want %s", tc.reason, got, tc.want)
			}
			if !tc.check(c.After) {
				t.Errorf("%s: %+v", tc.reason, c.After)
			}
		})
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	got := Count([]Result{
		{Outcome: EntryImported}, {Outcome: EntryImported}, {Outcome: EntryUpdated}, {Outcome: EntryUnchanged},
		{Outcome: EntrySkipped, Name: "s", Reason: "empty"}, {Outcome: EntryFailed, Name: "f", Reason: "too deep"},
	})
	want := Counts{Imported: 2, Updated: 1, Skipped: 2, Unchanged: 1, Failed: 1, Indexed: 3, Errors: []EntryError{{"f", "too deep"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Status() != Failed {
		t.Errorf("Status = %s, want failed", got.Status())
	}
	if s := Count([]Result{{Outcome: EntryUnchanged}}).Status(); s != Done {
		t.Errorf("Status = %s, want done", s)
	}
}

func TestAddNotes(t *testing.T) {
	t.Parallel()
	got, err := AddNotes([]byte(`{"Hidden":2,"Unknown":{"content: x":1}}`), chatexport.Notes{Hidden: 1, Unknown: map[string]int{"content: x": 2}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := AddNotes(got, chatexport.Notes{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Hidden":3`, `"content: x":3`} {
		if !strings.Contains(string(again), want) {
			t.Errorf("%s does not contain %s", again, want)
		}
	}
}

func TestProgressWarnings(t *testing.T) {
	t.Parallel()
	p := Progress{Memories: 8}
	if got := p.Warnings(); got != nil {
		t.Errorf("nothing skipped: %v", got)
	}
	p = p.Skip("memory quota exceeded").Skip("another reason")
	if diff := cmp.Diff([]string{"Skipped 2 of 10 memories: memory quota exceeded."}, p.Warnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// quotaStore stores entries until their texts exceed its quota.
type quotaStore struct {
	Files
	left    int
	results []Result
	notes   chatexport.Notes
}

func (s *quotaStore) StoreBatch(_ context.Context, _ Run, b Batch) (Batch, error) {
	var uncounted []Entry
	var results []Result
	size := 0
	for _, e := range b.Entries {
		switch {
		case e.Outcome != "":
			results = append(results, Rejected(e))
		case !e.TokensCounted:
			uncounted = append(uncounted, e)
		default:
			results = append(results, Result{Ordinal: e.Ordinal, Outcome: EntryImported, Notes: e.Notes})
			for _, m := range e.Upsert.Messages {
				size += len(m.Text)
			}
		}
	}
	if size > s.left {
		return Batch{}, fault.New(fault.Forbidden, "storage quota exceeded")
	}
	if len(results) == 0 {
		return b, nil
	}
	s.left -= size
	s.results = append(s.results, results...)
	s.notes.Add(Count(results).Notes)
	return Batch{Entries: uncounted}, nil
}

// A batch that exceeds the quota is stored as far as possible. Every entry has
// one result, and its notes are stored with that result.
func TestStoreBatchBeyondTheQuota(t *testing.T) {
	t.Parallel()
	store := &quotaStore{left: 7}
	hidden := func(n int) chatexport.Notes { return chatexport.Notes{Hidden: n} }
	b := Batch{Entries: []Entry{
		{Ordinal: 0, Notes: hidden(1), Upsert: upsert("a", "12345")}, {Ordinal: 1, Notes: hidden(2), Upsert: upsert("b", "12345")},
		{Ordinal: 2, Notes: hidden(3), Upsert: upsert("c", "12")}, {Ordinal: 3, Notes: hidden(4), Outcome: EntrySkipped, Reason: "empty"},
	}}
	counted := 0
	err := storeBatch(t.Context(), store, Run{}, b, func(text string) int { counted++; return len(text) })
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(store.results, func(a, b Result) int { return a.Ordinal - b.Ordinal })
	want := []Result{
		{Ordinal: 0, Notes: hidden(1), Outcome: EntryImported},
		{Ordinal: 1, Notes: hidden(2), Outcome: EntryFailed, Reason: "storage quota exceeded"},
		{Ordinal: 2, Notes: hidden(3), Outcome: EntryImported},
		{Ordinal: 3, Notes: hidden(4), Outcome: EntrySkipped, Reason: "empty"},
	}
	if diff := cmp.Diff(want, store.results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if store.notes.Hidden != 10 {
		t.Errorf("notes are %+v, want those of each entry once", store.notes)
	}
	if counted != 3 {
		t.Errorf("tokens of %d messages counted, want 3", counted)
	}
}
