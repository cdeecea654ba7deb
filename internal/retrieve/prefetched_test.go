package retrieve

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// TestSearchScoresPrefetchedUnits: units that were read while the query was embedded are not read again.
func TestSearchScoresPrefetchedUnits(t *testing.T) {
	t.Parallel()
	s := &stores{coverage: Coverage{All: true}, exactErr: errUnavailable}
	var vectors [][]float32
	s.prefetched.Nearest = func(vector []float32) ([]Hit, Coverage) {
		vectors = append(vectors, vector)
		return []Hit{{2, .9}, {1, .5}}, Coverage{All: true}
	}
	now := time.Now()
	e := s.engine(&now)
	got, degraded := search(t, e, homeLocation, 10)
	if d := cmp.Diff([]UnitID{2, 1}, got); d != "" || degraded || len(vectors) != 1 || vectors[0] == nil {
		t.Errorf("degraded %t, scored with %v, -want +got\n%s", degraded, vectors, d)
	}
	similar, err := e.Similar(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Limit: 1}, func() []float32 { return []float32{1} })
	if err != nil || len(similar) != 1 || len(vectors) != 2 {
		t.Errorf("Similar = %v, %v, scored %d times, want one unit, scored once", similar, err, len(vectors)-1)
	}
	similar, err = e.Similar(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Limit: 1}, func() []float32 { return nil })
	if err != nil || similar != nil || len(vectors) != 2 {
		t.Errorf("Similar without a vector = %v, %v, want nothing", similar, err)
	}
	s.prefetchErr = errUnavailable
	if _, err := e.Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Text: "q", Limit: 10}); !errors.Is(err, errUnavailable) {
		t.Errorf("Search = %v, want the database's error", err)
	}
}

// TestSearchDescribesPrefetchedUnits: only units of which the texts were not read are described by the database.
func TestSearchDescribesPrefetchedUnits(t *testing.T) {
	t.Parallel()
	s := &stores{coverage: Coverage{All: true}, exact: []Hit{{3, .7}}}
	s.prefetched.Nearest = func([]float32) ([]Hit, Coverage) { return []Hit{{2, .9}, {3, .7}, {1, .5}}, Coverage{All: true} }
	s.prefetched.Describe = func(ids []UnitID) (described []Described, others []UnitID) {
		for _, id := range ids {
			if id == 3 {
				others = append(others, id)
				continue
			}
			described = append(described, Described{ID: id, Owner: "read " + s.owner(id), Text: "text", Vector: []float32{.5}})
		}
		return described, others
	}
	now := time.Now()
	e := s.engine(&now)
	got, err := e.Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Text: "q", Limit: 10})
	var found []string
	for _, f := range got.Found {
		found = append(found, f.Owner)
	}
	if d := cmp.Diff([]string{"read " + s.owner(2), s.owner(3), "read " + s.owner(1)}, found); d != "" || err != nil || !slices.Equal(s.described, []UnitID{3}) {
		t.Errorf("the database described %v, %v, -want +got\n%s", s.described, err, d)
	}
	// Equally similar units keep the order of the search, the newest first.
	s.prefetched.Nearest = func([]float32) ([]Hit, Coverage) { return []Hit{{3, .5}, {1, .5}}, Coverage{All: true} }
	s.exact = []Hit{{3, .5}}
	equal, err := e.Similar(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Limit: 2}, func() []float32 { return []float32{1} })
	if err != nil || len(equal) != 2 || equal[0].Owner != s.owner(3) {
		t.Errorf("Similar = %v, %v, want two units, the newest first", equal, err)
	}
	s.described, s.exact = nil, nil
	s.prefetched.Nearest = func([]float32) ([]Hit, Coverage) { return []Hit{{1, .5}}, Coverage{All: true} }
	similar, err := e.Similar(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Limit: 1}, func() []float32 { return []float32{1} })
	if err != nil || len(similar) != 1 || similar[0].Owner != "read "+s.owner(1) || s.described != nil {
		t.Errorf("Similar = %v, %v, the database described %v, want the unit that was read", similar, err, s.described)
	}
}

// TestSearchRanksPrefetchedWords: words that were read with the vectors are not searched in the database, even without the embedder.
func TestSearchRanksPrefetchedWords(t *testing.T) {
	t.Parallel()
	for name, embedErr := range map[string]error{"WithVector": nil, "WithoutVector": errUnavailable} {
		s := &stores{coverage: Coverage{All: true}, lexicalErr: errors.New("the database was searched"), embedErr: embedErr}
		s.prefetched.Nearest = func([]float32) ([]Hit, Coverage) { return []Hit{{2, .9}}, Coverage{All: true} }
		s.prefetched.Lexical = func() []Hit { return []Hit{{1, 3}} }
		now := time.Now()
		want := []UnitID{1, 2}
		if embedErr != nil {
			want = want[:1]
		}
		got, _ := search(t, s.engine(&now), homeLocation, 10)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// The cache scores more units than the database does for a window of time, so those of the window are counted.
func TestSearchCountsTheWindowOfCachedUnits(t *testing.T) {
	t.Parallel()
	for n, few := range map[int]bool{placement.ExactUnits: true, placement.ExactUnits + 1: false} {
		s := &stores{coverage: Coverage{All: true}}
		s.prefetched.Nearest = func([]float32) ([]Hit, Coverage) {
			s.coverage.All = false // the window has many units when they are counted
			return equalUnits(n).exact, Coverage{All: true}
		}
		now := time.Now()
		q := Query{Kind: Chat, Text: "q", Limit: 10, Window: Window{From: now.Add(-time.Hour)}}
		if _, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, homeLocation, q); err != nil {
			t.Fatal(err)
		}
		if s.queried.Few != few {
			t.Errorf("%d cached units: the database was told that the window has few units: %t, want %t", n, s.queried.Few, few)
		}
	}
}

// TestStaleness: similar units may be out of date if the caller allows it, the results of a search never are.
func TestStaleness(t *testing.T) {
	t.Parallel()
	s := &stores{coverage: Coverage{All: true}, staleness: time.Hour}
	now := time.Now()
	e := s.engine(&now)
	q := Query{Kind: Memory, Text: "q", Limit: 1, Staleness: time.Second}
	if _, err := e.Search(t.Context(), tenant.Scope{}, homeLocation, q); err != nil || s.staleness != 0 {
		t.Errorf("Search = %v, units may be %v old, want 0", err, s.staleness)
	}
	for _, stale := range []bool{false, true} {
		s.prefetched = Prefetched{Stale: stale, Nearest: func([]float32) ([]Hit, Coverage) { return []Hit{{1, .5}}, Coverage{All: true} }}
		similar, err := e.Similar(t.Context(), tenant.Scope{}, homeLocation, q, func() []float32 { return []float32{1} })
		if err != nil || s.staleness != time.Second || len(similar) != 1 || similar[0].Stale != stale {
			t.Errorf("Similar = %v, %v, units may be %v old, want one unit, stale %t, and 1s", similar, err, s.staleness, stale)
		}
	}
}
