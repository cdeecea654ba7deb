package retrieve

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

var targetLocation = placement.Location{Collection: "c", Partition: "k", Shared: true}

// copyTo returns a migration into an existing partition, by run 1.
func copyTo(at placement.Location) placement.Migration {
	return placement.Migration{Target: placement.Placement{Location: at, PartitionID: 1}, Run: 1}
}

// newMigration returns an env with n indexed live units whose tenant starts a
// migration.
func newMigration(n UnitID) *env {
	w := newEnv()
	for id := UnitID(1); id <= n; id++ {
		w.live[id], w.vectors[id], w.confirmed[id] = true, []float32{1}, true
		w.indexed[id] = Entry{ID: id}
	}
	w.at.Migration = copyTo(targetLocation)
	return w
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, n := range []UnitID{0, 1, syncBatch, 2*syncBatch + 1} {
		w := newMigration(n)
		w.migrated[n+9] = Entry{ID: n + 9} // left by an earlier run
		if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil {
			t.Fatalf("Migrate: %v", err)
		}
		if d := cmp.Diff(placement.State{Current: placement.Placement{Location: targetLocation}}, w.at); d != "" {
			t.Errorf("%d units: -want +got\n%s", n, d)
		}
		if live, indexed := w.state(); !slices.Equal(live, indexed) {
			t.Errorf("%d of %d units are in the new location", len(indexed), n)
		}
	}
}

func TestMigrateResumesFromTheCursor(t *testing.T) {
	t.Parallel()
	w := newMigration(3 * syncBatch)
	upserts := 0
	w.onCall = func(what string) error {
		if what == "upsert" {
			if upserts++; upserts == 3 {
				return errUnavailable
			}
		}
		return nil
	}
	if err := w.indexer().Migrate(t.Context(), "t", 1); err == nil {
		t.Fatal("Migrate succeeded without the index")
	}
	if w.at.Migration.Cursor != 2*syncBatch || w.at.Current.Location != homeLocation {
		t.Fatalf("stopped at %+v, want a cursor after two batches and the old placement", w.at)
	}
	if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil || upserts != 4 {
		t.Errorf("Migrate = %v after %d writes, want it to resume with the third of 3 batches", err, upserts)
	}
	if w.at.Current.Location != targetLocation {
		t.Errorf("the tenant is at %+v", w.at)
	}
}

func TestMigrateIgnoresASupersededRun(t *testing.T) {
	t.Parallel()
	w := newMigration(10)
	if err := w.indexer().Migrate(t.Context(), "t", 2); err != nil || len(w.migrated) > 0 {
		t.Errorf("Migrate = %v with %d entries, want nothing done", err, len(w.migrated))
	}
	// Another run replaces it while it works.
	w.onCall = func(what string) error {
		if what == "advance" {
			w.at.Migration.Run = 3
		}
		return nil
	}
	if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil || w.at.Current.Location != homeLocation {
		t.Errorf("Migrate = %v, at %+v, want the migration left to the other run", err, w.at)
	}
}

// A tenant that keeps writing does not delay the end of its migration.
func TestMigrateCompletesWhileTheTenantWrites(t *testing.T) {
	t.Parallel()
	w := newMigration(syncBatch + 1)
	written := 0
	w.onCall = func(what string) error {
		if what == "upsert" {
			if written++; written > 10 {
				return errUnavailable
			}
			id := UnitID(len(w.live) + 1)
			w.live[id], w.vectors[id] = true, []float32{1}
		}
		return nil
	}
	if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil || w.at.Current.Location != targetLocation {
		t.Errorf("Migrate = %v, at %+v after %d writes", err, w.at, written)
	}
}

func TestMigrateSkipsUnitsWithoutVectors(t *testing.T) {
	t.Parallel()
	w := newMigration(3)
	delete(w.vectors, 2)
	delete(w.indexed, 2)
	w.onCall = func(what string) error {
		if what == "embed" {
			t.Error("the embedder was called")
		}
		return nil
	}
	if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	if _, indexed := w.state(); !slices.Equal(indexed, []UnitID{1, 3}) || w.at.Current.Location != targetLocation {
		t.Errorf("indexed %v, at %+v", indexed, w.at)
	}
}

func TestMigrateConfirmsOnlyRebuiltUnits(t *testing.T) {
	t.Parallel()
	w := newMigration(3)
	clear(w.confirmed)
	if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil || len(w.confirmed) > 0 {
		t.Errorf("Migrate to another location = %v, confirmed %v", err, w.confirmed)
	}
	w = newMigration(3)
	clear(w.confirmed)
	clear(w.indexed)
	w.at.Migration = copyTo(homeLocation)
	if err := w.indexer().Migrate(t.Context(), "t", 1); err != nil || len(w.confirmed) != 3 || w.at != (placement.State{Current: placement.Placement{Location: homeLocation}}) {
		t.Errorf("Migrate to the current location = %v, confirmed %v, at %+v", err, w.confirmed, w.at)
	}
	if live, indexed := w.state(); !slices.Equal(live, indexed) {
		t.Errorf("indexed %v", indexed)
	}
}

// TestMigrateInAnyOrder changes units, runs their jobs, fails calls and replaces
// runs during a migration, in random order. In the end, the new location
// contains exactly the live units.
func TestMigrateInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newEnv()
		x := w.indexer()
		var jobs [][]UnitID
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
				id := UnitID(rapid.IntRange(1, 4).Draw(t, "unit"))
				if w.live[id] {
					delete(w.live, id)
				} else {
					w.live[id], w.vectors[id] = true, []float32{1}
				}
				w.confirmed[id] = false
				jobs = append(jobs, []UnitID{id})
			case "run":
				if len(jobs) > 0 && depth < 4 {
					run()
				}
			case "begin":
				if !begun {
					w.at.Migration, begun = copyTo(targetLocation), true
				}
			case "restart":
				if w.at.Migration.Run > 0 && !migrating {
					w.at.Migration.Run++
				}
			case "fail":
				return errUnavailable
			}
			return nil
		}
		w.onCall = func(string) error {
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
			w.at.Migration = copyTo(targetLocation)
		}
		for w.at.Current.Location != targetLocation || len(jobs) > 0 {
			if len(jobs) > 0 && (w.at.Current.Location == targetLocation || rapid.Bool().Draw(t, "job first")) {
				run()
			} else {
				migrating = rapid.Bool().Draw(t, "undisturbed")
				_ = x.Migrate(context.Background(), "t", w.at.Migration.Run)
				migrating = false
			}
		}
		live, indexed := w.state()
		if d := cmp.Diff(live, indexed); d != "" {
			t.Fatalf("-live +indexed\n%s", d)
		}
	})
}
