package indexing

import (
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// nowhere is a location in no index.
var nowhere = placement.Location{Partition: "p"}

// newUnindexed returns an env with n live units of a tenant in no index. Every third has no vector yet.
func newUnindexed(n retrieve.UnitID) *env {
	e := newEnv()
	e.at.Current.Location = nowhere
	for id := retrieve.UnitID(1); id <= n; id++ {
		e.live[id] = true
		if id%3 != 0 {
			e.vectors[id], e.confirmed[id] = []float32{1}, true
		}
	}
	return e
}

func (e *env) wantComplete(t *testing.T) {
	t.Helper()
	for id := range e.live {
		if e.vectors[id] == nil || !e.confirmed[id] {
			t.Errorf("unit %d: vector %v, confirmed %t", id, e.vectors[id], e.confirmed[id])
		}
	}
}

func TestSyncWithoutIndex(t *testing.T) {
	t.Parallel()
	e := newUnindexed(4)
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1, 2, 3, 4, 99}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	e.wantComplete(t)
}

func TestSweepWithoutIndex(t *testing.T) {
	t.Parallel()
	e := newUnindexed(3*sweepPage + 7)
	for round, want := range []Drift{{Missing: sweepPage + 2}, {}} {
		got, err := e.indexer().Sweep(t.Context(), "t")
		if err != nil || got != want {
			t.Errorf("sweep %d = %+v, %v, want %+v", round, got, err, want)
		}
		e.wantComplete(t)
	}
	e = newUnindexed(10)
	if err := e.indexer().Rebuild(t.Context(), "t"); err != nil {
		t.Fatalf("Rebuild: %v", err)
	}
	e.wantComplete(t)
}

// A tenant moves into an index while its units are scored in the database, and the copy is complete
// before searches rely on it.
func TestMigrateIntoIndex(t *testing.T) {
	t.Parallel()
	e := newUnindexed(2*syncBatch + 2)
	e.at.Migration = copyTo(homeLocation)
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{3, 6}); err != nil {
		t.Fatalf("Sync during the migration: %v", err)
	}
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	e.wantLocation(t, homeLocation)
	for id := range e.live {
		if _, indexed := e.indexed[id]; !indexed && e.confirmed[id] {
			t.Fatalf("unit %d is confirmed, but not in the index", id)
		}
	}
	if _, err := e.indexer().Sweep(t.Context(), "t"); err != nil {
		t.Fatalf("Sweep: %v", err)
	}
	if live, indexed := e.state(); !slices.Equal(live, indexed) {
		t.Errorf("%d of %d units are in the index after a sweep", len(indexed), len(live))
	}
}

func TestCompareTargetWithoutIndex(t *testing.T) {
	t.Parallel()
	e := newUnindexed(3)
	if err := e.indexer().CompareTarget(t.Context(), "t", placement.Target{Location: nowhere}); err != nil {
		t.Errorf("CompareTarget: %v", err)
	}
}
