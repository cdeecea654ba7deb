package chat

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// byDepth ranks differently at each depth.
type byDepth struct{ *fakes }

func (b byDepth) Search(ctx context.Context, scope tenant.Scope, at placement.Location, q retrieve.Query) (retrieve.Result, error) {
	r, err := b.fakes.Search(ctx, scope, at, q)
	n := q.Limit % len(r.Found)
	r.Found = slices.Concat(r.Found[n:], r.Found[:n])
	return r, err
}

// Questions about today are about the day of asOf, in the time zone of the user.
func TestSearchAsOfADay(t *testing.T) {
	t.Parallel()
	tokyo, err := ParseZone("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	end, err := ParseEnd("2026-05-31", tokyo)
	if err != nil {
		t.Fatal(err)
	}
	f := trains()
	s := newService(f)
	s.Now = func() time.Time { return askedAt }
	if _, _, err := s.Search(t.Context(), alice, SearchInput{Query: "What did I say today?", Limit: 1, AsOf: end, Zone: tokyo}); err != nil {
		t.Fatal(err)
	}
	want := retrieve.Window{From: time.Date(2026, time.May, 30, 15, 0, 0, 0, time.UTC), To: time.Date(2026, time.May, 31, 15, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, f.asked.Window); diff != "" {
		t.Errorf("window (-want +got):\n%s", diff)
	}
}

// Pages of one depth contain each passage once, whatever their size.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	f := &fakes{conversations: []Conversation{{ID: "c1"}}, messages: map[string][]Message{}}
	for i := range 20 {
		f.messages["c1"] = append(f.messages["c1"], Message{Index: i, Text: "text"})
		f.ranking.Found = append(f.ranking.Found, retrieve.Found{Owner: "c1", Seq: i, Score: 1 - float64(i)/20})
	}
	s := newService(f)
	s.Searcher = byDepth{f}
	rapid.Check(t, func(t *rapid.T) {
		seen := map[int]bool{}
		for skip := 0; skip < 20; {
			in := SearchInput{Query: "q", Limit: rapid.IntRange(1, MaxResults).Draw(t, "limit"), Skip: skip, Depth: MaxResults}
			got, _, err := s.Search(context.Background(), alice, in)
			if err != nil || len(got) == 0 {
				t.Fatalf("%d results after %d: %v", len(got), skip, err)
			}
			for i, r := range got {
				if seen[r.Message.Index] || r.Rank != skip+i {
					t.Fatalf("message %d again, or not at rank %d but %d", r.Message.Index, skip+i, r.Rank)
				}
				seen[r.Message.Index] = true
			}
			skip += len(got)
		}
	})
}
