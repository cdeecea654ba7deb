package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Searches limited to a time range use the time of each message, not that of its
// conversation, and find only messages of the user.
func TestSearchByMessageTime(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	for i, u := range b.users {
		in := newConversation("zebra", 0, 6)
		for j := range in.Messages { // one message per day
			in.Messages[j].CreatedAt = start.AddDate(0, 0, j)
			in.Messages[j].Text = fmt.Sprintf("zebra %d of user %d", j, i)
		}
		b.upsert(t, u, in)
	}
	rows, err := b.owner.Query(t.Context(), "update units set embedding = decode(repeat('003c', $1), 'hex') returning id", 384)
	if err != nil {
		t.Fatal(err)
	}
	rows.Close()
	vector := make([]float32, 384)
	day := func(n int) time.Time { return start.AddDate(0, 0, n) }
	for name, test := range map[string]struct {
		after, before time.Time
		want          []int
	}{
		"open":               {want: []int{0, 1, 2, 3, 4, 5}},
		"after":              {after: day(4), want: []int{4, 5}},
		"before":             {before: day(2), want: []int{0, 1}},
		"both":               {after: day(2), before: day(4), want: []int{2, 3}},
		"half-open interval": {after: day(3).Add(time.Microsecond), before: day(5).Add(time.Microsecond), want: []int{4, 5}},
		"none":               {after: day(9)},
		"end before start":   {after: day(4), before: day(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := retrieve.Request{Kind: retrieve.Chat, Text: "zebra", Limit: 50, After: test.after, Before: test.before}
			words, err := b.Lexical(t.Context(), alice, q)
			if err != nil {
				t.Fatal(err)
			}
			exact, coverage, err := b.exact(t.Context(), alice, q, vector)
			if err != nil || !coverage.All {
				t.Fatalf("Exact: %+v, %v", coverage, err)
			}
			for kind, hits := range map[string][]retrieve.Hit{"words": words, "exact": exact} {
				var ids []retrieve.UnitID
				for _, h := range hits {
					ids = append(ids, h.ID)
				}
				if got := b.seqs(t, q, ids); !slices.Equal(got, test.want) {
					t.Errorf("%s found messages %v, want %v", kind, got, test.want)
				}
			}
			all, err := b.Lexical(t.Context(), alice, retrieve.Request{Kind: retrieve.Chat, Text: "zebra", Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			var ids []retrieve.UnitID
			for _, h := range all {
				ids = append(ids, h.ID)
			}
			if got := b.seqs(t, q, ids); !slices.Equal(got, test.want) {
				t.Errorf("of all, %v resolve, want %v", got, test.want)
			}
		})
	}
}

// seqs resolves units of the first user and returns the indexes of their messages
// in order.
func (b *testBundle) seqs(t *testing.T, q retrieve.Request, ids []retrieve.UnitID) []int {
	t.Helper()
	found, err := b.Resolve(t.Context(), b.users[0], q, ids)
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, f := range found {
		if want := start.AddDate(0, 0, f.Seq); !f.At.Equal(want) {
			t.Errorf("message %d was written at %v, want %v", f.Seq, f.At, want)
		}
		out = append(out, f.Seq)
	}
	slices.Sort(out)
	return out
}

// Time ranges of messages do not apply to memories.
func TestMessageTimeDoesNotApplyToMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.remember(t, b.users[0], "zebra", func(string) []float32 { return make([]float32, 384) })
	q := retrieve.Request{Kind: retrieve.Memory, Text: "zebra", Limit: 5, After: start, Before: start}
	words, err := b.Lexical(t.Context(), b.users[0], q)
	if err != nil || len(words) != 1 {
		t.Fatalf("words: %v, %v", words, err)
	}
	exact, _, err := b.exact(t.Context(), b.users[0], q, make([]float32, 384))
	if err != nil || len(exact) != 1 {
		t.Fatalf("exact: %v, %v", exact, err)
	}
	found, err := b.Resolve(t.Context(), b.users[0], q, []retrieve.UnitID{words[0].ID})
	if err != nil || len(found) != 1 {
		t.Fatalf("resolve: %v, %v", found, err)
	}
}
