package retrieve

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// nowhere is a location in no index.
var nowhere = placement.Location{Partition: "p"}

// The database scores everything if no index contains the tenant's units, or if this process
// has none. A search is then complete.
func TestSearchWithoutIndex(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		at      placement.Location
		noIndex bool
	}{
		"a tenant in no index":                    {at: nowhere},
		"a tenant that has no placement yet":      {},
		"a process without an index":              {at: homeLocation, noIndex: true},
		"a process and a tenant without an index": {at: nowhere, noIndex: true},
	} {
		// The user has too many units for an exact search beside an index.
		s := &stores{exact: []Hit{{1, .9}, {2, .5}}, index: []Hit{{7, 1}}}
		s.coverage.All = true
		s.many = true
		now := time.Now()
		e := s.engine(&now)
		if tc.noIndex {
			e.Index = nil
		}
		got, degraded := search(t, e, tc.at, 10)
		if d := cmp.Diff([]UnitID{1, 2}, got); d != "" || degraded {
			t.Errorf("%s: degraded %t, -want +got\n%s", reason, degraded, d)
		}
		similar, err := e.Similar(t.Context(), tenant.Scope{}, tc.at, Query{Kind: Memory, Limit: 1}, func() []float32 { return []float32{1} })
		if err != nil || len(similar) != 1 {
			t.Errorf("%s: Similar = %v, %v, want one unit", reason, similar, err)
		}
		if s.indexCalls != 0 || !s.queried.Unindexed {
			t.Errorf("%s: %d searches of the index, last query %+v, want all units scored", reason, s.indexCalls, s.queried)
		}
	}
}

// A filter that matches too many memories scores the newest memories that match, and checks the best of all others, which
// the database finds too.
func TestFilterWithManyMatchesSearchesAllUnitsWithoutIndex(t *testing.T) {
	t.Parallel()
	s := &stores{matched: []string{"m"}, matchedTruncated: true, exact: []Hit{{1, 0.9}, {3, 0.7}}, coverage: Coverage{All: true}, dead: map[UnitID]bool{3: true}}
	now, all := time.Now(), 0.0
	result, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, nowhere, Query{Kind: Memory, Where: someFilter, Limit: 10, MinScore: &all})
	if err != nil || len(result.Found) != 1 || result.Found[0].ID != 1 {
		t.Errorf("Search = %+v, %v, want unit 1", result, err)
	}
	if len(s.unrestricted) != 1 || !s.unrestricted[0].Unindexed || s.indexCalls != 0 {
		t.Errorf("unrestricted searches %+v and %d of the index, want one of the database", s.unrestricted, s.indexCalls)
	}
}
