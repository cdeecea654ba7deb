package indexing

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

var targetLocation = placement.Location{Collection: "c", Partition: "k", Shared: true}

// copyTo returns a migration into an existing partition, by run 1.
func copyTo(at placement.Location) placement.Migration {
	return placement.Migration{Target: placement.Placement{Location: at, PartitionID: 1}, Run: 1}
}

// newMigration returns an env with n indexed live units whose tenant starts a
// migration.
func newMigration(n retrieve.UnitID) *env {
	e := newEnv()
	for id := retrieve.UnitID(1); id <= n; id++ {
		e.live[id], e.vectors[id], e.confirmed[id] = true, []float32{1}, true
		e.indexed[id] = Entry{ID: id}
	}
	e.at.Migration = copyTo(targetLocation)
	return e
}

// wantLocation checks that the placement is at the location, and that a migration is
// either complete or has not replaced it.
func (e *env) wantLocation(t *testing.T, want placement.Location) {
	t.Helper()
	if diff := cmp.Diff(want, e.at.Current.Location); diff != "" {
		t.Errorf("current location (-want +got):\n%s", diff)
	}
	if want == targetLocation && e.at.Migrating() {
		t.Errorf("the migration is still in progress: %+v", e.at.Migration)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, n := range []retrieve.UnitID{0, 1, syncBatch, 2*syncBatch + 1} {
		e := newMigration(n)
		e.migrated[n+9] = Entry{ID: n + 9} // left by an earlier run
		if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
			t.Fatalf("Migrate: %v", err)
		}
		e.wantLocation(t, targetLocation)
		if live, indexed := e.state(); !slices.Equal(live, indexed) {
			t.Errorf("%d of %d units are in the new location", len(indexed), n)
		}
	}
}

func TestMigrateResumesFromTheCursor(t *testing.T) {
	t.Parallel()
	e := newMigration(3 * syncBatch)
	upserts := 0
	e.onCall = func(call string) error {
		if call == "upsert" {
			if upserts++; upserts == 3 {
				return errUnavailable
			}
		}
		return nil
	}
	if err := e.indexer().Migrate(t.Context(), "t", 1); err == nil {
		t.Fatal("Migrate succeeded without the index")
	}
	if got := e.at.Migration.Cursor; got != 2*syncBatch {
		t.Errorf("cursor after two batches = %d, want %d", got, 2*syncBatch)
	}
	e.wantLocation(t, homeLocation)
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	if upserts != 4 {
		t.Errorf("upserts = %d, want 4: two, a failed one and the third batch", upserts)
	}
	e.wantLocation(t, targetLocation)
}

func TestMigrateIgnoresASupersededRun(t *testing.T) {
	t.Parallel()
	e := newMigration(10)
	if err := e.indexer().Migrate(t.Context(), "t", 2); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	if n := len(e.migrated); n != 0 {
		t.Errorf("a superseded run copied %d entries, want none", n)
	}
	// Another run replaces it during the migration.
	e.onCall = func(call string) error {
		if call == "advance" {
			e.at.Migration.Run = 3
		}
		return nil
	}
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	e.wantLocation(t, homeLocation)
}

// A tenant that keeps writing does not delay the end of its migration.
func TestMigrateCompletesWhileTheTenantWrites(t *testing.T) {
	t.Parallel()
	e := newMigration(syncBatch + 1)
	written := 0
	e.onCall = func(call string) error {
		if call == "upsert" {
			if written++; written > 10 {
				return errUnavailable
			}
			id := retrieve.UnitID(len(e.live) + 1)
			e.live[id], e.vectors[id] = true, []float32{1}
		}
		return nil
	}
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate after %d writes: %v", written, err)
	}
	e.wantLocation(t, targetLocation)
}

func TestMigrateSkipsUnitsWithoutVectors(t *testing.T) {
	t.Parallel()
	e := newMigration(3)
	delete(e.vectors, 2)
	delete(e.indexed, 2)
	e.onCall = func(call string) error {
		if call == "embed" {
			t.Error("the embedder was called")
		}
		return nil
	}
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	if _, indexed := e.state(); !slices.Equal(indexed, []retrieve.UnitID{1, 3}) {
		t.Errorf("indexed %v, want units 1 and 3", indexed)
	}
	e.wantLocation(t, targetLocation)
}

func TestMigrateConfirmsOnlyRebuiltUnits(t *testing.T) {
	t.Parallel()
	e := newMigration(3)
	clear(e.confirmed)
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate to another location: %v", err)
	}
	if len(e.confirmed) != 0 {
		t.Errorf("Migrate to another location confirmed %v, want none", e.confirmed)
	}
	e = newMigration(3)
	clear(e.confirmed)
	clear(e.indexed)
	e.at.Migration = copyTo(homeLocation)
	if err := e.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate to the current location: %v", err)
	}
	if len(e.confirmed) != 3 {
		t.Errorf("Migrate to the current location confirmed %v, want 3 units", e.confirmed)
	}
	e.wantLocation(t, homeLocation)
	if live, indexed := e.state(); !slices.Equal(live, indexed) {
		t.Errorf("indexed %v, want %v", indexed, live)
	}
}

// TestMigrateInAnyOrder changes units, runs their jobs, fails calls and replaces
// runs during a migration, in random order. In the end, the new location
// contains exactly the live units.
func TestMigrateInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := newEnv()
		e.at.Current.Location = rapid.SampledFrom([]placement.Location{homeLocation, nowhere}).Draw(t, "from")
		x := e.indexer()
		var jobs [][]retrieve.UnitID
		depth, changes, begun, migrating := 0, 80, false, false
		run := func() {
			i := rapid.IntRange(0, len(jobs)-1).Draw(t, "job")
			job := jobs[i]
			jobs = slices.Delete(jobs, i, i+1)
			depth++
			defer func() { depth-- }()
			if err := x.Sync(context.Background(), "t", job); err != nil {
				jobs = append(jobs, job)
			}
		}
		event := func() error {
			switch rapid.SampledFrom([]string{"nothing", "change", "run", "begin", "restart", "fail"}).Draw(t, "event") {
			case "change":
				id := retrieve.UnitID(rapid.IntRange(1, 4).Draw(t, "unit"))
				if e.live[id] {
					delete(e.live, id)
				} else {
					e.live[id], e.vectors[id] = true, []float32{1}
				}
				e.confirmed[id] = false
				jobs = append(jobs, []retrieve.UnitID{id})
			case "run":
				if len(jobs) > 0 && depth < 4 {
					run()
				}
			case "begin":
				if !begun {
					e.at.Migration, begun = copyTo(targetLocation), true
				}
			case "restart":
				if e.at.Migration.Run > 0 && !migrating {
					e.at.Migration.Run++
				}
			case "fail":
				return errUnavailable
			}
			return nil
		}
		e.onCall = func(string) error {
			if changes > 0 {
				changes--
				return event()
			}
			return nil
		}
		for range 3 {
			_ = event()
		}
		if !begun {
			e.at.Migration = copyTo(targetLocation)
		}
		for e.at.Current.Location != targetLocation || len(jobs) > 0 {
			if len(jobs) > 0 && (e.at.Current.Location == targetLocation || rapid.Bool().Draw(t, "job first")) {
				run()
			} else {
				migrating = rapid.Bool().Draw(t, "undisturbed")
				_ = x.Migrate(context.Background(), "t", e.at.Migration.Run)
				migrating = false
			}
		}
		live, indexed := e.state()
		if d := cmp.Diff(live, indexed); d != "" {
			t.Fatalf("-live +indexed\n%s", d)
		}
	})
}
