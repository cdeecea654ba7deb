package retrieve

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// inOrder returns the ids found for a window, best first.
func (s *stores) inOrder(t *testing.T, w Window) []UnitID {
	t.Helper()
	now := saturday
	got, err := s.engine(&now).Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Chat, Text: "x", Limit: 10, Window: w})
	if err != nil {
		t.Fatal(err)
	}
	var out []UnitID
	for _, f := range got.Found {
		out = append(out, f.ID)
	}
	return out
}

func TestWindowIsPreferred(t *testing.T) {
	t.Parallel()
	s := &stores{
		lexical:  []Hit{{1, 5}, {2, 4}, {3, 0.1}, {4, 0.1}},
		exact:    []Hit{{1, .6}, {2, .6}, {3, 0}, {4, 0}},
		coverage: Coverage{All: true},
		times:    map[UnitID]time.Time{1: saturday, 2: saturday.AddDate(0, -6, 0), 3: saturday, 4: saturday.AddDate(0, -6, 0)},
	}
	may := monthOf(2026, time.May, time.UTC)
	if diff := cmp.Diff([]UnitID{1, 2, 4, 3}, s.inOrder(t, Window{})); diff != "" {
		t.Errorf("without a window (-want +got):\n%s", diff)
	}
	if len(s.within) > 0 {
		t.Errorf("queries with a time window: %+v, want none", s.within)
	}
	// Units in May move up, but not above units with a far better lexical match.
	if diff := cmp.Diff([]UnitID{2, 1, 4, 3}, s.inOrder(t, may)); diff != "" {
		t.Errorf("in May (-want +got):\n%s", diff)
	}
	if len(s.within) != 1 {
		t.Fatalf("queries with a time window: len(s.within) = %d, want 1", len(s.within))
	}
	if s.within[0].After != may.From {
		t.Errorf("queries with a time window: s.within[0].After = %v, want %v", s.within[0].After, may.From)
	}
	if s.within[0].Before != may.To {
		t.Errorf("queries with a time window: s.within[0].Before = %v, want %v", s.within[0].Before, may.To)
	}
	if diff := cmp.Diff([]UnitID{1, 2, 4, 3}, s.inOrder(t, monthOf(2020, time.May, time.UTC))); diff != "" {
		t.Errorf("a window without units hides results (-want +got):\n%s", diff)
	}
}

func TestWithinRestrictsRequest(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return saturday.AddDate(0, 0, n) }
	for name, test := range map[string]struct {
		window      Window
		given, want Request
	}{
		"open":    {Window{From: day(1)}, Request{}, Request{After: day(1)}},
		"inner":   {Window{day(1), day(2)}, Request{After: day(0), Before: day(9)}, Request{After: day(1), Before: day(2)}},
		"outer":   {Window{day(0), day(9)}, Request{After: day(1), Before: day(2)}, Request{After: day(1), Before: day(2)}},
		"only to": {Window{To: day(2)}, Request{After: day(1)}, Request{After: day(1), Before: day(2)}},
	} {
		test.given.Kind, test.want.Kind = Chat, Chat
		got, ok := plan{query: Query{Window: test.window}}.within(test.given)
		if diff := cmp.Diff(test.want, got); !ok || diff != "" {
			t.Errorf("%s: within = %t (-want +got):\n%s", name, ok, diff)
		}
	}
	if _, ok := (plan{query: Query{Window: Window{From: day(1)}}}).within(Request{Kind: Memory}); ok {
		t.Error("within = true for memories, want false")
	}
}

// raise keeps all units, the order of the units inside and outside the window, and scores
// between 0 and 1.
func TestRaiseProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ranking := Fuse(drawHits(t, "words", 0, 50), drawHits(t, "dense", -1, 1), false)
		inside := rapid.MapOf(rapid.Map(rapid.IntRange(1, 60), func(i int) UnitID { return UnitID(i) }), rapid.Bool()).Draw(t, "inside")
		is := func(id UnitID) bool { return inside[id] }
		got := raise(ranking, inside, rapid.Float64Range(0, 3).Draw(t, "bonus"))
		if len(got) != len(ranking) {
			t.Fatalf("%d units, want %d", len(got), len(ranking))
		}
		for _, want := range []bool{true, false} {
			if diff := cmp.Diff(only(ranking, is, want), only(got, is, want)); diff != "" {
				t.Fatalf("order of units with inside=%v (-before +after):\n%s", want, diff)
			}
		}
		for i, h := range got {
			if math.IsNaN(h.Score) || h.Score < 0 || h.Score > 1 || i > 0 && h.Score > got[i-1].Score {
				t.Fatalf("scores are out of range or not descending: %v", got)
			}
		}
	})
}

// Memories in a bucket rank higher if the question contains the name of the bucket.
func TestPreferNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		question, bucket string
		first            UnitID
	}{
		"named":            {"Which recipes need eggs?", "Recipes", 2},
		"other inflection": {"Which recipe needs eggs?", "Recipes", 2},
		"part of the name": {"Which recipes need eggs?", "Old recipes", 1},
		"not named":        {"What needs eggs?", "Recipes", 1},
		"stop words":       {"Which of them needs eggs?", "Them", 1},
		"short":            {"Did she tell us?", "US", 1},
		"default bucket":   {"Which recipes need eggs?", "", 1},
	} {
		c := comparison{query: Query{Kind: Memory, Text: tc.question}, all: []Described{{ID: 1, Text: "one"}, {ID: 2, Text: "two", Heading: tc.bucket}}}
		ranking := []Hit{{1, logistic(2)}, {2, logistic(1.5)}}
		if got := c.preferNamed(ranking); got[0].ID != tc.first {
			t.Errorf("%s: first is %d, want %d", name, got[0].ID, tc.first)
		}
	}
}

func drawHits(t *rapid.T, label string, low, high float64) []Hit {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Hit {
		return Hit{UnitID(rapid.IntRange(1, 60).Draw(t, "id")), rapid.Float64Range(low, high).Draw(t, "score")}
	}), 0, 30, func(h Hit) UnitID { return h.ID }).Draw(t, label)
}

func only(ranking []Hit, is func(UnitID) bool, want bool) []UnitID {
	out := []UnitID{}
	for _, h := range ranking {
		if is(h.ID) == want {
			out = append(out, h.ID)
		}
	}
	return out
}
