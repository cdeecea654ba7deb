package indexing

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Each write of a unit's row adds all of its index entries again.
func TestSyncSavesAndConfirmsTogether(t *testing.T) {
	t.Parallel()
	e := newEnv()
	var calls []string
	e.onCall = func(call string) error {
		if call == "save" && len(e.indexed) < 2 {
			t.Errorf("saved before the index contains the units: %v", e.indexed)
		}
		calls = append(calls, call)
		return nil
	}
	e.live[1], e.live[2] = true, true
	e.vectors[2] = []float32{2}
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1, 2}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	if !e.confirmed[1] || !e.confirmed[2] {
		t.Errorf("confirmed: %v, want both units", e.confirmed)
	}
	if want := []string{"placement", "load", "embed", "upsert", "live of", "save", "placement"}; !slices.Equal(calls, want) {
		t.Errorf("calls: %q, want %q", calls, want)
	}
}

func TestSyncKeepsVectorsIfTheIndexFails(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1] = true
	e.onCall = func(call string) error {
		if call == "upsert" {
			return errUnavailable
		}
		return nil
	}
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1}); !errors.Is(err, errUnavailable) {
		t.Errorf("Sync = %v, want the error of the index", err)
	}
	if e.vectors[1] == nil || e.confirmed[1] {
		t.Errorf("saved %v, confirmed %v, want a vector that is not confirmed", e.vectors, e.confirmed)
	}
}

// The next attempt of a job does not embed again what an earlier one has embedded, wherever that one ended.
func TestSyncKeepsVectorsOfAnEndedAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		call   string // at which the attempt ends
		nth    int
		want   int // vectors
	}{
		"Embed":  {"the timeout of the job ends the third batch of texts", "embed", 3, 2 * embedBatch},
		"Upsert": {"the timeout of the job ends the write", "upsert", 1, saveBatch},
		"LiveOf": {"the timeout of the job ends the second look", "live of", 1, saveBatch},
		"Save":   {"the timeout of the job ends the save", "save", 1, saveBatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv()
			var ids []retrieve.UnitID
			for id := retrieve.UnitID(1); id <= saveBatch; id++ {
				ids = append(ids, id)
				e.live[id] = true
			}
			ctx, timeout := context.WithCancel(t.Context())
			defer timeout()
			calls := 0
			e.onCall = func(call string) error {
				if call == test.call {
					calls++
				}
				if call == test.call && calls == test.nth {
					timeout()
					return ctx.Err()
				}
				if call == "save" { // with a context of its own
					return nil
				}
				return ctx.Err()
			}
			if err := e.indexer().Sync(ctx, "t", ids); !errors.Is(err, context.Canceled) {
				t.Errorf("Sync = %v, want that it was canceled", err)
			}
			if n := len(e.vectors); n != test.want {
				t.Errorf("%s: %d vectors were saved, want %d", test.reason, n, test.want)
			}
			if n := len(e.confirmed); n != 0 {
				t.Errorf("%s: %d units were confirmed, want none", test.reason, n)
			}
		})
	}
}

// Units are written and removed in large batches, unless they are to be embedded: those are saved in small ones.
func TestSyncBatches(t *testing.T) {
	t.Parallel()
	many := make([]retrieve.UnitID, syncBatch)
	for i := range many {
		many[i] = retrieve.UnitID(i + 1)
	}
	for name, test := range map[string]struct {
		live, embedded bool
		want           map[string]int // calls
	}{
		"Deleted":  {false, false, map[string]int{"load": 1, "delete": 1, "live of": 1}},
		"Embedded": {true, true, map[string]int{"load": 1, "upsert": 1, "live of": 1, "confirm": 1}},
		"New": {true, false, map[string]int{
			"load": 9, "upsert": 8, "live of": 8, "save": 8, "embed": 32, // the last 52 texts need four, like the other 64
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv()
			for _, id := range many {
				if test.live {
					e.live[id] = true
				}
				if test.embedded {
					e.vectors[id] = []float32{1}
				}
			}
			calls := map[string]int{}
			e.onCall = func(call string) error {
				if call != "placement" {
					calls[call]++
				}
				return nil
			}
			if err := e.indexer().Sync(t.Context(), "t", many); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if live, indexed := e.state(); !slices.Equal(live, indexed) || len(e.confirmed) != len(live) {
				t.Errorf("%d units are live, %d in the index, %d confirmed", len(live), len(indexed), len(e.confirmed))
			}
		})
	}
}

// A process ended after the index contained a unit and before its vector was saved, and no job is left that would do
// it.
func TestSweepConfirmsIndexedUnits(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1], e.live[2] = true, true
	e.indexed[1], e.indexed[2] = Entry{ID: 1}, Entry{ID: 2}
	e.vectors[2], e.confirmed[2] = []float32{2}, true
	x := e.indexer()
	for round, want := range []Drift{{Missing: 1}, {}} {
		if d, err := x.Sweep(t.Context(), "t"); err != nil || d != want {
			t.Errorf("sweep %d = %+v, %v, want %+v", round, d, err, want)
		}
	}
	if e.vectors[1] == nil || !e.confirmed[1] {
		t.Errorf("saved %v, confirmed %v, want a vector that is confirmed", e.vectors, e.confirmed)
	}
}

// A unit that cannot be confirmed does not keep a sweep from the rest of the tenant.
func TestSweepContinuesWithoutConfirmation(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1] = true
	e.indexed[1], e.indexed[2] = Entry{ID: 1}, Entry{ID: 2}
	e.onCall = func(call string) error {
		if call == "embed" {
			return errUnavailable
		}
		return nil
	}
	if d, err := e.indexer().Sweep(t.Context(), "t"); err != nil || d != (Drift{Orphaned: 1}) {
		t.Errorf("sweep = %+v, %v, want an orphaned unit", d, err)
	}
	if _, indexed := e.indexed[2]; indexed || e.confirmed[1] {
		t.Errorf("orphaned unit in the index: %t, unit without a vector confirmed: %t, want neither", indexed, e.confirmed[1])
	}
}
