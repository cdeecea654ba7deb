package retrieve

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var someFilter = filter.Filter{Op: filter.Eq, Field: filter.AgentID, Values: []filter.Value{{Kind: filter.String, Text: "a"}}}

func searchFiltered(t *testing.T, s *stores) (ids []UnitID, degraded bool, err error) {
	t.Helper()
	now, all := time.Now(), 0.0
	result, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Where: someFilter, Limit: 10, MinScore: &all})
	for _, f := range result.Found {
		ids = append(ids, f.ID)
	}
	return ids, result.Degraded, err
}

// The units of all memories that match are scored in the database; the index, which does
// not know what matches, is not asked.
func TestFilteredSearchIsExact(t *testing.T) {
	t.Parallel()
	s := &stores{matched: []string{"m"}, exact: []Hit{{7, 0.1}}, coverage: Coverage{All: true}, index: []Hit{{1, 0.9}}}
	ids, degraded, err := searchFiltered(t, s)
	if err != nil || degraded {
		t.Errorf("degraded %t, %v", degraded, err)
	}
	if diff := cmp.Diff([]UnitID{7}, ids); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if s.indexCalls != 0 {
		t.Error("the index was searched")
	}
	if diff := cmp.Diff([]string{"m"}, s.queried.Owners); diff != "" {
		t.Errorf("restricted to (-want +got):\n%s", diff)
	}
}

func TestFilterWithoutMatchSearchesNothing(t *testing.T) {
	t.Parallel()
	s := &stores{matched: []string{}, lexical: []Hit{{1, 1}}, exact: []Hit{{1, 1}}}
	ids, degraded, err := searchFiltered(t, s)
	if len(ids) != 0 || degraded || err != nil || s.embedCalls != 0 {
		t.Errorf("found %v after %d embeddings, degraded %t, %v", ids, s.embedCalls, degraded, err)
	}
}

// A filter that matches too many memories uses every search, drops the hits that do not
// match, and says that older memories may be missing.
func TestFilterWithManyMatchesChecksTheHits(t *testing.T) {
	t.Parallel()
	s := &stores{matched: []string{"m"}, matchedTruncated: true, exact: []Hit{{1, 0.9}}, coverage: Coverage{All: true},
		index: []Hit{{2, 0.8}, {3, 0.7}}, lexical: []Hit{{4, 3}}, dead: map[UnitID]bool{3: true}}
	ids, degraded, err := searchFiltered(t, s)
	slices.Sort(ids)
	if err != nil || !degraded {
		t.Errorf("degraded %t, %v", degraded, err)
	}
	if diff := cmp.Diff([]UnitID{1, 2, 4}, ids); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if slices.Contains(s.described, 3) {
		t.Error("a hit that does not match was compared")
	}
}

// A Searcher applies every filter of the query: the request has each field of the same name.
func TestRequestHasTheFiltersOfTheQuery(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return saturday.AddDate(0, 0, n) }
	q := Query{Kind: Chat, Text: "x", Group: 1, From: day(1), To: day(2), Where: someFilter, Generation: 3, After: day(4), Before: day(5)}
	e := New(Config{})
	query, request := reflect.ValueOf(q), reflect.ValueOf(e.newPlan(tenant.Scope{}, homeLocation, q, 6).request)
	for field := range request.Type().Fields() {
		of := query.FieldByName(field.Name)
		if !of.IsValid() || field.Name == "Limit" {
			continue
		}
		if of.IsZero() {
			t.Errorf("%s of the query is not set", field.Name)
		}
		if diff := cmp.Diff(of.Interface(), request.FieldByName(field.Name).Interface()); diff != "" {
			t.Errorf("%s (-query +request):\n%s", field.Name, diff)
		}
	}
}

func TestFilterFailureFailsTheSearch(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("no database")
	if _, _, err := searchFiltered(t, &stores{matchErr: unavailable}); !errors.Is(err, unavailable) {
		t.Errorf("err = %v", err)
	}
}
