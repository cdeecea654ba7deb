package retrieve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// stores are what an Engine works with, filled in by hand: it is the order of
// calls, the faults and the merging that is tested here, not retrieval.
type stores struct {
	mu sync.Mutex

	lexical  []Hit
	exact    []Hit
	coverage Coverage
	index    []Hit
	cosines  map[UnitID]float64 // for Score
	dead     map[UnitID]bool
	owners   map[UnitID]string // "" for one of its own
	times    map[UnitID]time.Time
	within   []Query // those asked by words that name a time of messages

	lexicalErr, exactErr, scoreErr, resolveErr, indexErr, embedErr error
	indexHangs                                                     bool

	indexCalls, embedCalls int
	limit                  int
	scored                 []UnitID
}

func (s *stores) Lexical(_ context.Context, _ tenant.Scope, q Query) ([]Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = q.Limit
	if !q.After.IsZero() || !q.Before.IsZero() {
		s.within = append(s.within, q)
		return slices.DeleteFunc(slices.Clone(s.lexical), func(h Hit) bool { return !q.Window.Contains(s.times[h.ID]) }), s.lexicalErr
	}
	return s.lexical, s.lexicalErr
}

func (s *stores) Exact(context.Context, tenant.Scope, Query, []float32) ([]Hit, Coverage, error) {
	return s.exact, s.coverage, s.exactErr
}

func (s *stores) Score(_ context.Context, _ tenant.Scope, ids []UnitID, _ []float32) ([]Hit, error) {
	s.scored = ids
	var out []Hit
	for _, id := range ids {
		if c, ok := s.cosines[id]; ok {
			out = append(out, Hit{id, c})
		}
	}
	return out, s.scoreErr
}

func (s *stores) Resolve(_ context.Context, _ tenant.Scope, _ Query, ids []UnitID) ([]Found, error) {
	var out []Found
	for _, id := range slices.Backward(ids) { // not in order
		if s.dead[id] {
			continue
		}
		owner := s.owners[id]
		if owner == "" {
			owner = string(rune('a' + id))
		}
		out = append(out, Found{ID: id, Owner: owner, At: s.times[id]})
	}
	return out, s.resolveErr
}

func (s *stores) Search(ctx context.Context, _ tenant.Scope, _ placement.Location, _ Query, _ []float32) ([]Hit, error) {
	s.mu.Lock()
	s.indexCalls++
	s.mu.Unlock()
	if s.indexHangs {
		<-ctx.Done()
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "unavailable")
	}
	return s.index, s.indexErr
}

func (s *stores) Upsert(context.Context, tenant.ID, placement.Location, []Entry) error {
	panic("not read")
}
func (s *stores) Delete(context.Context, tenant.ID, placement.Location, []UnitID) error {
	panic("not read")
}
func (s *stores) Drop(context.Context, placement.Location) error { panic("not dropped") }

func (s *stores) List(context.Context, tenant.ID, placement.Location, UnitID, int) ([]UnitID, error) {
	panic("not read")
}

func (s *stores) Embed(context.Context, []string) ([][]float32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.embedCalls++
	return [][]float32{{1}}, s.embedErr
}
func (s *stores) Model() string   { return "test" }
func (s *stores) Dimensions() int { return 1 }

var (
	somewhere      = placement.Location{Collection: "c", Partition: "p"}
	errUnavailable = fault.New(fault.Unavailable, "unavailable")
)

func (s *stores) engine(now *time.Time) *Engine {
	return New(Config{Searcher: s, Index: s, Embedder: s, IndexTimeout: 20 * time.Millisecond,
		Now: func() time.Time { return *now }})
}

func search(t *testing.T, e *Engine, p placement.Location, limit int) ([]UnitID, bool) {
	t.Helper()
	r, err := e.Search(t.Context(), tenant.Scope{Tenant: "t", User: 1}, p, Query{Kind: Memory, Text: "q", Limit: limit})
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	ids := []UnitID{}
	for i, f := range r.Found {
		if i > 0 && f.Score > r.Found[i-1].Score {
			t.Errorf("result %d is better than the one before it", i)
		}
		ids = append(ids, f.ID)
	}
	return ids, r.Degraded
}

func TestSearch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		stores   *stores
		nowhere  bool // no placement
		limit    int
		want     []UnitID
		degraded bool
	}{
		"Nothing":        {reason: "a user without units", stores: &stores{coverage: Coverage{All: true}}, want: []UnitID{}},
		"All":            {reason: "what the database scored completely needs no index", stores: &stores{exact: []Hit{{1, .1}, {2, .9}}, index: []Hit{{7, 1}}, coverage: Coverage{All: true}}, want: []UnitID{2, 1}},
		"AllNoIndex":     {reason: "nor a placement", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{All: true}}, nowhere: true, want: []UnitID{1}},
		"AllIndexHangs":  {reason: "nor waits for an index that hangs", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{All: true}, indexHangs: true}, want: []UnitID{1}},
		"Merged":         {reason: "recent ones beside the index's; the database's cosine counts", stores: &stores{exact: []Hit{{1, .5}}, index: []Hit{{2, .9}, {1, .99}}}, want: []UnitID{2, 1}},
		"NoPlacement":    {reason: "a tenant that has no place yet is answered by words", stores: &stores{lexical: []Hit{{1, 1}}, index: []Hit{{2, .9}}}, nowhere: true, want: []UnitID{1}, degraded: true},
		"IndexAway":      {reason: "answered without it, and says so", stores: &stores{lexical: []Hit{{1, 1}}, exact: []Hit{{2, .9}}, indexErr: errUnavailable}, want: []UnitID{1, 2}, degraded: true},
		"IndexHangs":     {reason: "waited for no longer than its deadline", stores: &stores{lexical: []Hit{{1, 1}}, indexHangs: true}, want: []UnitID{1}, degraded: true},
		"IndexBroken":    {reason: "a bug in the index is no reason to fail a search", stores: &stores{lexical: []Hit{{1, 1}}, indexErr: errors.New("bug")}, want: []UnitID{1}, degraded: true},
		"EmbedderAway":   {reason: "answered by words", stores: &stores{lexical: []Hit{{1, 1}, {2, 2}}, exact: []Hit{{3, 1}}, embedErr: errUnavailable}, want: []UnitID{2, 1}, degraded: true},
		"Truncated":      {reason: "not all recent units were looked at", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{Truncated: true}}, want: []UnitID{1}, degraded: true},
		"Missing":        {reason: "some unit has no vector yet", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{All: true, Missing: true}}, want: []UnitID{1}, degraded: true},
		"WordsAreScored": {reason: "what only the words found is compared by meaning too", stores: &stores{lexical: []Hit{{1, 1}, {2, 1}}, exact: []Hit{{3, .5}}, cosines: map[UnitID]float64{1: .1, 2: .8}, coverage: Coverage{All: true}}, want: []UnitID{2, 1, 3}},
		"Dead":           {reason: "what the database does not have any more is left out", stores: &stores{exact: []Hit{{1, .9}, {2, .5}}, index: []Hit{{3, .95}}, dead: map[UnitID]bool{1: true, 3: true}}, want: []UnitID{2}},
		"OneOfEach":      {reason: "the best piece of a memory stands for it", stores: &stores{exact: []Hit{{1, .9}, {2, .5}, {3, .7}}, owners: map[UnitID]string{1: "m", 3: "m"}, coverage: Coverage{All: true}}, want: []UnitID{1, 2}},
		"Limit":          {reason: "no more than wanted", stores: &stores{exact: []Hit{{1, .9}, {2, .5}, {3, .7}}, coverage: Coverage{All: true}}, limit: 2, want: []UnitID{1, 3}},
		"LimitAlive":     {reason: "dead ones do not use up the limit", stores: &stores{exact: []Hit{{1, .9}, {2, .5}, {3, .7}}, dead: map[UnitID]bool{1: true}, coverage: Coverage{All: true}}, limit: 2, want: []UnitID{3, 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := somewhere
			if tc.nowhere {
				p = placement.Location{}
			}
			if tc.limit == 0 {
				tc.limit = 10
			}
			now := time.Now()
			got, degraded := search(t, tc.stores.engine(&now), p, tc.limit)
			if d := cmp.Diff(tc.want, got); d != "" || degraded != tc.degraded {
				t.Errorf("%s: degraded %t, want %t; -want +got\n%s", tc.reason, degraded, tc.degraded, d)
			}
		})
	}
}

func TestSearchFailsOnlyWithTheDatabase(t *testing.T) {
	t.Parallel()
	broken := fault.New(fault.Unavailable, "the database is unavailable")
	for name, s := range map[string]*stores{
		"Lexical": {lexicalErr: broken},
		"Exact":   {exactErr: broken},
		"Score":   {lexical: []Hit{{1, 1}}, scoreErr: broken},
		"Resolve": {lexical: []Hit{{1, 1}}, resolveErr: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			_, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, somewhere, Query{Kind: Memory, Limit: 1})
			if !errors.Is(err, broken) {
				t.Errorf("Search = %v, want the database's error", err)
			}
		})
	}
}

func TestSearchAsksForMoreThanWanted(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{1: 100, 20: 100, 60: 240, 100: 400, 1000: 1000} {
		s := &stores{}
		now := time.Now()
		search(t, s.engine(&now), somewhere, limit)
		if s.limit != want {
			t.Errorf("for %d results %d candidates, want %d", limit, s.limit, want)
		}
	}
}

func TestAnAbsentIndexIsNotAskedEachTime(t *testing.T) {
	t.Parallel()
	s := &stores{indexErr: errUnavailable}
	now := time.Now()
	e := s.engine(&now)
	steps := []struct {
		reason string
		after  time.Duration
		err    error
		calls  int // in all
	}{
		{"asked", 0, errUnavailable, 1},
		{"not again at once", 400 * time.Millisecond, errUnavailable, 1},
		{"tried after a while", 200 * time.Millisecond, errUnavailable, 2},
		{"left alone longer", 900 * time.Millisecond, errUnavailable, 2},
		{"tried again", 200 * time.Millisecond, nil, 3},
		{"back: asked each time", 0, nil, 4},
		{"back: asked each time", 0, errUnavailable, 5},
		{"a new absence starts over", 600 * time.Millisecond, nil, 6},
	}
	for i, step := range steps {
		now = now.Add(step.after)
		s.indexErr = step.err
		_, degraded := search(t, e, somewhere, 1)
		if s.indexCalls != step.calls {
			t.Fatalf("step %d, %s: asked %d times, want %d", i, step.reason, s.indexCalls, step.calls)
		}
		if asked := i == 0 || steps[i-1].calls < step.calls; degraded != (!asked || step.err != nil) {
			t.Errorf("step %d, %s: degraded = %t", i, step.reason, degraded)
		}
	}
}

func TestALostPartitionIsItsTenantsTroubleOnly(t *testing.T) {
	t.Parallel()
	s := &stores{indexErr: fault.Wrap(fault.Unavailable, ErrNoPartition, "unavailable")}
	now := time.Now()
	e := s.engine(&now)
	search(t, e, somewhere, 1)
	s.indexErr = nil
	other := placement.Location{Collection: somewhere.Collection, Partition: "q"}
	if _, degraded := search(t, e, other, 1); degraded {
		t.Error("another tenant of the collection is searched without the index")
	}
}

func TestAnAbsentEmbedderIsNotAskedEachTime(t *testing.T) {
	t.Parallel()
	s := &stores{embedErr: errUnavailable}
	now := time.Now()
	e := s.engine(&now)
	for range 5 {
		search(t, e, somewhere, 1)
	}
	if s.embedCalls != 1 {
		t.Errorf("asked %d times, want once", s.embedCalls)
	}
	now = now.Add(time.Second)
	s.embedErr = nil
	if _, degraded := search(t, e, somewhere, 1); degraded {
		t.Error("its return is not noticed")
	}
}
