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

type refusedError struct{}

func (refusedError) Error() string { return "status 400 Bad Request" }
func (refusedError) Refused() bool { return true }

// stores implements the dependencies of an Engine with fixed results. The tests cover the
// order of calls, failures and merging, not retrieval itself.
type stores struct {
	mu sync.Mutex

	lexical  []Hit
	exact    []Hit
	coverage Coverage
	index    []Hit
	cosines  map[UnitID]float64 // for Score
	dead     map[UnitID]bool
	owners   map[UnitID]string // "" for a distinct owner
	times    map[UnitID]time.Time
	headings map[UnitID]string
	unsaved  map[UnitID]bool // without a vector in the database
	within   []Request       // lexical queries with a time window

	lexicalErr, exactErr, scoreErr, describeErr, resolveErr, indexErr, embedErr error
	indexHangs                                                                  bool
	countErr                                                                    error
	grows                                                                       bool // has few units only when counted
	many                                                                        bool // has many units when counted

	matched          []string // of Match
	matchedTruncated bool
	matchErr         error
	queried          Request // the last of Exact

	unrestricted []Request // of Exact

	indexCalls, embedCalls int
	refuses                func(text string) bool // by the embedder
	embedded               string                 // the last query
	limit                  int
	scored, described      []UnitID
	resolveCalls           int
}

func (s *stores) Lexical(_ context.Context, _ tenant.Scope, r Request) ([]Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = r.Limit
	if !r.After.IsZero() || !r.Before.IsZero() {
		s.within = append(s.within, r)
		return slices.DeleteFunc(slices.Clone(s.lexical), func(h Hit) bool { return !(Window{r.After, r.Before}).Contains(s.times[h.ID]) }), s.lexicalErr
	}
	return s.lexical, s.lexicalErr
}

func (s *stores) Exact(_ context.Context, _ tenant.Scope, r Request, _ []float32) ([]Hit, Coverage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queried = r
	if r.Owners == nil {
		s.unrestricted = append(s.unrestricted, r)
	}
	return s.exact, s.coverage, s.exactErr
}

func (s *stores) WithinExactLimit(context.Context, tenant.Scope, Request) (bool, error) {
	return !s.many && (s.coverage.All || s.grows), s.countErr
}

func (s *stores) Score(_ context.Context, _ tenant.Scope, _ placement.GenerationID, ids []UnitID, _ []float32) ([]Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scored = ids
	var out []Hit
	for _, id := range ids {
		if c, ok := s.cosines[id]; ok {
			out = append(out, Hit{id, c})
		}
	}
	return out, s.scoreErr
}

func (s *stores) Describe(_ context.Context, _ tenant.Scope, _ Request, ids []UnitID) ([]Described, error) {
	cosines := scores(s.exact)
	s.described = ids
	var out []Described
	for _, id := range ids {
		if s.dead[id] {
			continue
		}
		d := Described{ID: id, Owner: s.owner(id), Text: "text", Heading: s.headings[id], At: s.times[id], Vector: []float32{float32(cosines[id])}}
		if s.unsaved[id] {
			d.Vector = nil
		}
		out = append(out, d)
	}
	return out, s.describeErr
}

func (s *stores) owner(id UnitID) string {
	if owner := s.owners[id]; owner != "" {
		return owner
	}
	return string(rune('a' + id))
}

func (s *stores) Resolve(_ context.Context, _ tenant.Scope, _ Request, ids []UnitID) ([]Found, error) {
	s.resolveCalls++
	var out []Found
	for _, id := range slices.Backward(ids) { // not in order
		if s.dead[id] {
			continue
		}
		out = append(out, Found{ID: id, Owner: s.owner(id), At: s.times[id]})
	}
	return out, s.resolveErr
}

func (s *stores) Match(context.Context, tenant.Scope, Request) (ids []string, truncated bool, err error) {
	return s.matched, s.matchedTruncated, s.matchErr
}

func (s *stores) Search(ctx context.Context, _ tenant.Scope, _ placement.Location, _ Request, _ []float32) ([]Hit, error) {
	s.mu.Lock()
	s.indexCalls++
	s.mu.Unlock()
	if s.indexHangs {
		<-ctx.Done()
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "unavailable")
	}
	return s.index, s.indexErr
}

func (s *stores) Embed(context.Context, []string) ([][]float32, error) {
	return nil, errors.New("the query was embedded as a passage")
}
func (s *stores) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.embedCalls++
	if s.refuses != nil && s.refuses(text) {
		return nil, refusedError{}
	}
	s.embedded = text
	return []float32{1}, s.embedErr
}
func (s *stores) Model() string   { return "test" }
func (s *stores) Dimensions() int { return 1 }

var (
	homeLocation   = placement.Location{Collection: "c", Partition: "p"}
	errUnavailable = fault.New(fault.Unavailable, "unavailable")
)

func (s *stores) engine(now *time.Time) *Engine {
	return New(Config{Searcher: s, Index: s, Embedders: Embedders{0: s}, IndexTimeout: 20 * time.Millisecond,
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
			t.Errorf("result %d has a higher score than the previous one", i)
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
		unplaced bool // no placement
		limit    int
		want     []UnitID
		degraded bool
	}{
		"Nothing":        {reason: "a user without units", stores: &stores{coverage: Coverage{All: true}}, want: []UnitID{}},
		"All":            {reason: "what the database scored completely needs no index", stores: &stores{exact: []Hit{{1, .1}, {2, .9}}, index: []Hit{{7, 1}}, coverage: Coverage{All: true}}, want: []UnitID{2, 1}},
		"AllNoIndex":     {reason: "nor a placement", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{All: true}}, unplaced: true, want: []UnitID{1}},
		"AllIndexHangs":  {reason: "nor waits for an index that hangs", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{All: true}, indexHangs: true}, want: []UnitID{1}},
		"Grown":          {reason: "a user who has more units than when they were counted needs the index", stores: &stores{grows: true, exact: []Hit{{1, .5}}, index: []Hit{{2, .9}}}, want: []UnitID{2, 1}},
		"Merged":         {reason: "recent ones beside the index's; the database's cosine counts", stores: &stores{exact: []Hit{{1, .5}}, index: []Hit{{2, .9}, {1, .99}}}, want: []UnitID{2, 1}},
		"IndexAway":      {reason: "answered without it, and reported as degraded", stores: &stores{lexical: []Hit{{1, 1}}, exact: []Hit{{2, .9}}, indexErr: errUnavailable}, want: []UnitID{1, 2}, degraded: true},
		"IndexHangs":     {reason: "not awaited beyond its deadline", stores: &stores{lexical: []Hit{{1, 1}}, indexHangs: true}, want: []UnitID{1}, degraded: true},
		"IndexBroken":    {reason: "a bug in the index does not fail a search", stores: &stores{lexical: []Hit{{1, 1}}, indexErr: errors.New("bug")}, want: []UnitID{1}, degraded: true},
		"EmbedderAway":   {reason: "answered by words", stores: &stores{lexical: []Hit{{1, 1}, {2, 2}}, exact: []Hit{{3, 1}}, embedErr: errUnavailable}, want: []UnitID{2, 1}, degraded: true},
		"Truncated":      {reason: "not all recent units were scored", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{Truncated: true}}, want: []UnitID{1}, degraded: true},
		"Missing":        {reason: "some unit has no vector yet", stores: &stores{exact: []Hit{{1, .1}}, coverage: Coverage{All: true, Missing: true}}, want: []UnitID{1}, degraded: true},
		"WordsAreScored": {reason: "units found only by words are scored by cosine too", stores: &stores{lexical: []Hit{{1, 1}, {2, 1}}, exact: []Hit{{3, .5}}, cosines: map[UnitID]float64{1: .1, 2: .8}, coverage: Coverage{All: true}}, want: []UnitID{2, 1, 3}},
		"Dead":           {reason: "units deleted from the database are excluded", stores: &stores{exact: []Hit{{1, .9}, {2, .5}}, index: []Hit{{3, .95}}, dead: map[UnitID]bool{1: true, 3: true}}, want: []UnitID{2}},
		"OneOfEach":      {reason: "a memory is represented by its best piece", stores: &stores{exact: []Hit{{1, .9}, {2, .5}, {3, .7}}, owners: map[UnitID]string{1: "m", 3: "m"}, coverage: Coverage{All: true}}, want: []UnitID{1, 2}},
		"Limit":          {reason: "at most limit results", stores: &stores{exact: []Hit{{1, .9}, {2, .5}, {3, .7}}, coverage: Coverage{All: true}}, limit: 2, want: []UnitID{1, 3}},
		"LimitAlive":     {reason: "deleted units do not count toward the limit", stores: &stores{exact: []Hit{{1, .9}, {2, .5}, {3, .7}}, dead: map[UnitID]bool{1: true}, coverage: Coverage{All: true}}, limit: 2, want: []UnitID{3, 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := homeLocation
			if tc.unplaced {
				p = placement.Location{}
			}
			if tc.limit == 0 {
				tc.limit = 10
			}
			now := time.Now()
			got, degraded := search(t, tc.stores.engine(&now), p, tc.limit)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
			if degraded != tc.degraded {
				t.Errorf("%s: degraded = %t, want %t", tc.reason, degraded, tc.degraded)
			}
		})
	}
}

func TestSearchPrefersNamedBuckets(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]UnitID{"Which recipes need eggs?": {2, 1, 3}, "What needs eggs?": {1, 2, 3}} {
		s := &stores{exact: []Hit{{1, .9}, {2, .89}, {3, .1}}, coverage: Coverage{All: true}, headings: map[UnitID]string{2: "Recipes"}}
		now := time.Now()
		r, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Text: query, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []UnitID
		for _, f := range r.Found {
			got = append(got, f.ID)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: -want +got\n%s", query, d)
		}
	}
}

func TestSearchOfFewUnitsDoesNotAskTheIndex(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]int{"few": 0, "many": 1} {
		s := &stores{exact: []Hit{{1, .5}}, coverage: Coverage{All: calls == 0}}
		now := time.Now()
		search(t, s.engine(&now), homeLocation, 10)
		if s.indexCalls != calls {
			t.Errorf("%s: %d calls to the index, want %d", name, s.indexCalls, calls)
		}
	}
}

func TestSearchComparesCandidates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind        Kind
		limit, want int
	}{{Memory, 10, 100}, {Memory, 50, 100}, {Memory, 1000, 200}, {Chat, 10, 100}, {Chat, 50, 200}, {Chat, 100, 200}} {
		s := equalUnits(300)
		q := Query{Kind: test.kind, Text: "q", Limit: test.limit}
		if _, err := s.engine(new(time.Time)).Search(t.Context(), tenant.Scope{Tenant: "t", User: 1}, homeLocation, q); err != nil {
			t.Fatal(err)
		}
		if got := len(s.described); got != test.want {
			t.Errorf("kind %d with limit %d: %d candidates are compared, want %d", test.kind, test.limit, got, test.want)
		}
	}
}

// A memory is less relevant if more candidates than the compared ones are as similar.
func TestSearchJudgesWithAllCandidates(t *testing.T) {
	t.Parallel()
	score := func(units int) float64 {
		e := equalUnits(units).engine(new(time.Time))
		e.backgrounds.known[0] = &background{mean: map[Kind][]float32{Memory: {0}}, scale: map[Kind]float64{Memory: 1}, unrelated: [][]float32{{1}}}
		r, err := e.Search(t.Context(), tenant.Scope{Tenant: "t", User: 1}, homeLocation, Query{Kind: Memory, Text: "q", Limit: 50, MinScore: new(0.0)})
		if err != nil || len(r.Found) != 50 {
			t.Fatalf("Search = %d results, %v", len(r.Found), err)
		}
		return r.Found[0].Score
	}
	if all, crowded := score(100), score(200); crowded >= all {
		t.Errorf("score %.3f with 200 candidates, want less than the %.3f with 100", crowded, all)
	}
}

// equalUnits has units with the same cosine.
func equalUnits(n int) *stores {
	s := &stores{coverage: Coverage{All: true}}
	for i := range n {
		s.exact = append(s.exact, Hit{UnitID(i + 1), 0.9})
	}
	return s
}

func TestSearchFailsOnlyWithTheDatabase(t *testing.T) {
	t.Parallel()
	broken := fault.New(fault.Unavailable, "the database is unavailable")
	for name, s := range map[string]*stores{
		"Lexical":  {lexicalErr: broken},
		"Count":    {countErr: broken},
		"Exact":    {exactErr: broken},
		"Score":    {lexical: []Hit{{1, 1}}, scoreErr: broken},
		"Describe": {lexical: []Hit{{1, 1}}, describeErr: broken},
		"Resolve":  {lexical: []Hit{{1, 1}}, embedErr: errUnavailable, resolveErr: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			_, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Chat, Limit: 1})
			if !errors.Is(err, broken) {
				t.Errorf("Search = %v, want the database's error", err)
			}
		})
	}
}

func TestSearchFetchesMoreCandidatesThanLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{1: 100, 20: 100, 60: 240, 100: 400, 1000: 1000} {
		s := &stores{}
		now := time.Now()
		search(t, s.engine(&now), homeLocation, limit)
		if s.limit != want {
			t.Errorf("limit %d: %d candidates, want %d", limit, s.limit, want)
		}
	}
}

func searchChats(t *testing.T, s *stores, limit int) (ids []UnitID) {
	t.Helper()
	now := time.Now()
	result, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Chat, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Found {
		ids = append(ids, f.ID)
	}
	return ids
}

// An index job writes units to the index before it saves their vectors. Meanwhile, or after a crash, such a message does not rank above those with a vector.
func TestMessagesOnlyInTheIndexRankLast(t *testing.T) {
	t.Parallel()
	s := &stores{exact: []Hit{{1, 0.9}, {2, 0.5}}, index: []Hit{{9, 0.3}}, unsaved: map[UnitID]bool{9: true}}
	if diff := cmp.Diff([]UnitID{1, 2, 9}, searchChats(t, s, 9)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	s.lexical = []Hit{{9, 1}} // its words decide
	if got := searchChats(t, s, 9); got[0] != 9 {
		t.Errorf("found %v, want the message that contains the words of the question first", got)
	}
}

// The comparison in detail confirms that units are live, so they are not read again.
func TestDescribedUnitsAreNotResolved(t *testing.T) {
	t.Parallel()
	s := &stores{lexical: []Hit{{1, 3}, {2, 2}, {3, 1}}, dead: map[UnitID]bool{2: true}}
	got := searchChats(t, s, 2)
	slices.Sort(got)
	if diff := cmp.Diff([]UnitID{1, 3}, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if s.resolveCalls != 0 {
		t.Errorf("Resolve was called %d times", s.resolveCalls)
	}
}

// If all units were scored, the cosines of the lexical hits are known.
func TestUnitsAreScoredOnce(t *testing.T) {
	t.Parallel()
	s := &stores{coverage: Coverage{All: true}}
	for i := range UnitID(300) {
		s.exact = append(s.exact, Hit{i + 1, 1 - float64(i)/300})
	}
	s.lexical = []Hit{{300, 1}}
	searchChats(t, s, 10)
	if len(s.scored) != 0 {
		t.Errorf("vectors of %v were read", s.scored)
	}
}

func TestCandidatesAreComparedUpToADepth(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{1: 100, 20: 100, 30: 150, 100: 200} {
		s := &stores{}
		for i := range UnitID(400) {
			s.lexical = append(s.lexical, Hit{i + 1, float64(400 - i)})
		}
		searchChats(t, s, limit)
		if len(s.described) != want {
			t.Errorf("limit %d: %d candidates are compared, want %d", limit, len(s.described), want)
		}
	}
}

// TestSimilarReadsSpareCandidates: entries of the index may be stale, but not units that the database scored.
func TestSimilarReadsSpareCandidates(t *testing.T) {
	t.Parallel()
	for all, want := range map[bool]int{true: 10, false: 40} {
		s := &stores{coverage: Coverage{All: all}}
		for i := range UnitID(100) {
			s.exact = append(s.exact, Hit{i + 1, 1 - float64(i)/100})
		}
		now := time.Now()
		found, err := s.engine(&now).Similar(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Limit: 10}, func() []float32 { return []float32{1} })
		if err != nil || len(found) != 10 || found[0].Similarity < found[9].Similarity {
			t.Fatalf("Similar = %v, %v, want the best ten", found, err)
		}
		if len(s.described) != want {
			t.Errorf("all units were scored: %t; %d are read, want %d", all, len(s.described), want)
		}
	}
}

func TestUnavailableIndexIsRetriedWithBackoff(t *testing.T) {
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
		{"first search", 0, errUnavailable, 1},
		{"within the backoff", 400 * time.Millisecond, errUnavailable, 1},
		{"after the backoff", 200 * time.Millisecond, errUnavailable, 2},
		{"the backoff is longer now", 900 * time.Millisecond, errUnavailable, 2},
		{"after the longer backoff", 200 * time.Millisecond, nil, 3},
		{"available again: called each time", 0, nil, 4},
		{"available again: called each time", 0, errUnavailable, 5},
		{"a new failure starts with the short backoff", 600 * time.Millisecond, nil, 6},
	}
	for i, step := range steps {
		now = now.Add(step.after)
		s.indexErr = step.err
		_, degraded := search(t, e, homeLocation, 1)
		if s.indexCalls != step.calls {
			t.Fatalf("step %d, %s: %d calls to the index, want %d", i, step.reason, s.indexCalls, step.calls)
		}
		if asked := i == 0 || steps[i-1].calls < step.calls; degraded != (!asked || step.err != nil) {
			t.Errorf("step %d, %s: degraded = %t", i, step.reason, degraded)
		}
	}
}

func TestLostPartitionAffectsOnlyItsTenant(t *testing.T) {
	t.Parallel()
	s := &stores{indexErr: fault.Wrap(fault.Unavailable, placement.ErrNoPartition, "unavailable")}
	now := time.Now()
	e := s.engine(&now)
	search(t, e, homeLocation, 1)
	s.indexErr = nil
	other := placement.Location{Collection: homeLocation.Collection, Partition: "q"}
	if _, degraded := search(t, e, other, 1); degraded {
		t.Error("the search of another tenant in the collection is degraded")
	}
}

func TestUnavailableEmbedderIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	s := &stores{embedErr: errUnavailable}
	now := time.Now()
	e := s.engine(&now)
	for range 5 {
		search(t, e, homeLocation, 1)
	}
	if s.embedCalls != 1 {
		t.Errorf("%d calls to the embedder, want 1", s.embedCalls)
	}
	now = now.Add(time.Second)
	s.embedErr = nil
	if _, degraded := search(t, e, homeLocation, 1); degraded {
		t.Error("the search is degraded although the embedder is available again")
	}
}
