package memory

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// byDepth ranks differently at each depth.
type byDepth struct{ *fakes }

func (b byDepth) Search(_ context.Context, _ tenant.Scope, _ placement.Location, q retrieve.Query) (retrieve.Result, error) {
	list := slices.Clone(b.ranking.Found)
	if q.Limit > firstRanked {
		slices.Reverse(list)
	}
	list = list[:min(q.Limit, len(list))]
	for i := range list {
		list[i].Score = 1 - float64(i+q.Limit)/5000
	}
	return retrieve.Result{Found: list}, nil
}

// Pages contain each match once, best first, although the order depends on the depth of the ranking.
func TestPagesComeFromOneRanking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		f := filled(rapid.IntRange(0, 120).Draw(r, "stored"))
		f.newer = map[string]string{}
		for i := range f.memories[:max(len(f.memories)-1, 0)] {
			if rapid.IntRange(0, 4).Draw(r, "updated") == 0 {
				f.newer[fmt.Sprint("m", i)] = fmt.Sprint("m", rapid.IntRange(i+1, len(f.memories)-1).Draw(r, "by"))
			}
		}
		s := newService(f)
		s.Searcher = byDepth{f}
		who := alice
		who.Quota.PageTokens = 1 << 20
		var got []Memory
		for skip := 0; skip > 0 || len(got) == 0; {
			page, err := s.List(t.Context(), who, ListInput{Count: rapid.IntRange(1, 60).Draw(r, "count"), Query: "q", Skip: skip})
			if err != nil {
				r.Fatal(err)
			}
			got = append(got, page.Memories...)
			if skip = page.NextSkip; len(f.memories) == 0 {
				break
			}
		}
		seen := map[string]bool{}
		for i, m := range got {
			if seen[m.ID] || i > 0 && m.Score > got[i-1].Score {
				r.Fatalf("%s at %d: repeated, or with a higher score than the one before", m.ID, i)
			}
			seen[m.ID] = true
		}
		if len(seen) != len(f.memories) {
			r.Fatalf("%d of %d matches", len(seen), len(f.memories))
		}
	})
}
