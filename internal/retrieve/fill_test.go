package retrieve

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

var nextDoor = placement.Location{Collection: "c", Partition: "k", Shared: true}

// copyTo returns a migration into an existing partition, by run 1.
func copyTo(at placement.Location) placement.Migration {
	return placement.Migration{Target: placement.Placement{Location: at, PartitionID: 1}, Run: 1}
}

// moving returns a world with n live units, indexed, whose tenant is to move.
func moving(n UnitID) *world {
	w := newWorld()
	for id := UnitID(1); id <= n; id++ {
		w.live[id], w.vectors[id], w.confirmed[id] = true, []float32{1}, true
		w.indexed[id] = Entry{ID: id}
	}
	w.at.Migration = copyTo(nextDoor)
	return w
}

func TestFillMoves(t *testing.T) {
	t.Parallel()
	for _, n := range []UnitID{0, 1, syncBatch, 2*syncBatch + 1} {
		w := moving(n)
		w.elsewhere[n+9] = Entry{ID: n + 9} // left by an earlier run
		if err := w.indexer().Fill(t.Context(), "t", 1); err != nil {
			t.Fatalf("Fill: %v", err)
		}
		if d := cmp.Diff(placement.State{Current: placement.Placement{Location: nextDoor}}, w.at); d != "" {
			t.Errorf("%d units: -want +got\n%s", n, d)
		}
		if live, indexed := w.state(); !slices.Equal(live, indexed) {
			t.Errorf("of %d units the new place has %d", n, len(indexed))
		}
	}
}

func TestFillGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	w := moving(3 * syncBatch)
	upserts := 0
	w.meanwhile = func(what string) error {
		if what == "upsert" {
			if upserts++; upserts == 3 {
				return errUnavailable
			}
		}
		return nil
	}
	if err := w.indexer().Fill(t.Context(), "t", 1); err == nil {
		t.Fatal("Fill succeeded without the index")
	}
	if w.at.Migration.Cursor != 2*syncBatch || w.at.Current.Location != somewhere {
		t.Fatalf("broken off at %+v, want two batches noted and no move", w.at)
	}
	if err := w.indexer().Fill(t.Context(), "t", 1); err != nil || upserts != 4 {
		t.Errorf("Fill = %v after %d writes, want it to go on with the third of 3 batches", err, upserts)
	}
	if w.at.Current.Location != nextDoor {
		t.Errorf("the tenant is at %+v", w.at)
	}
}

func TestFillOfAnotherRunDoesNothing(t *testing.T) {
	t.Parallel()
	w := moving(10)
	if err := w.indexer().Fill(t.Context(), "t", 2); err != nil || len(w.elsewhere) > 0 {
		t.Errorf("Fill = %v with %d entries, want nothing done", err, len(w.elsewhere))
	}
	// One that takes over while it works.
	w.meanwhile = func(what string) error {
		if what == "advance" {
			w.at.Migration.Run = 3
		}
		return nil
	}
	if err := w.indexer().Fill(t.Context(), "t", 1); err != nil || w.at.Current.Location != somewhere {
		t.Errorf("Fill = %v, at %+v, want it to leave the end to the other", err, w.at)
	}
}

// A tenant that writes all the time is moved nevertheless.
func TestFillEndsWhileTheTenantWrites(t *testing.T) {
	t.Parallel()
	w := moving(syncBatch + 1)
	written := 0
	w.meanwhile = func(what string) error {
		if what == "upsert" {
			if written++; written > 10 {
				return errUnavailable
			}
			id := UnitID(len(w.live) + 1)
			w.live[id], w.vectors[id] = true, []float32{1}
		}
		return nil
	}
	if err := w.indexer().Fill(t.Context(), "t", 1); err != nil || w.at.Current.Location != nextDoor {
		t.Errorf("Fill = %v, at %+v after %d writes", err, w.at, written)
	}
}

func TestFillLeavesWhatHasNoVector(t *testing.T) {
	t.Parallel()
	w := moving(3)
	delete(w.vectors, 2)
	delete(w.indexed, 2)
	w.meanwhile = func(what string) error {
		if what == "embed" {
			t.Error("the embedder was asked")
		}
		return nil
	}
	if err := w.indexer().Fill(t.Context(), "t", 1); err != nil {
		t.Fatalf("Fill: %v", err)
	}
	if _, indexed := w.state(); !slices.Equal(indexed, []UnitID{1, 3}) || w.at.Current.Location != nextDoor {
		t.Errorf("indexed %v, at %+v", indexed, w.at)
	}
}

func TestFillConfirmsOnlyWhereTheTenantIs(t *testing.T) {
	t.Parallel()
	w := moving(3)
	clear(w.confirmed)
	if err := w.indexer().Fill(t.Context(), "t", 1); err != nil || len(w.confirmed) > 0 {
		t.Errorf("Fill of another place = %v, confirmed %v", err, w.confirmed)
	}
	w = moving(3)
	clear(w.confirmed)
	clear(w.indexed)
	w.at.Migration = copyTo(somewhere)
	if err := w.indexer().Fill(t.Context(), "t", 1); err != nil || len(w.confirmed) != 3 || w.at != (placement.State{Current: placement.Placement{Location: somewhere}}) {
		t.Errorf("Fill of its place = %v, confirmed %v, at %+v", err, w.confirmed, w.at)
	}
	if live, indexed := w.state(); !slices.Equal(live, indexed) {
		t.Errorf("indexed %v", indexed)
	}
}

// While a tenant is moved others change units, each with its job, and jobs run
// at any call; calls fail, and runs end and are started again. In the end the
// new place holds the live units and nothing else.
func TestMoveInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		x := w.indexer()
		var jobs [][]UnitID
		depth, changes, begun, filling := 0, 80, false, false
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
			switch rapid.SampledFrom([]string{"nothing", "change", "run", "move", "again", "fail"}).Draw(t, "event") {
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
			case "move":
				if !begun {
					w.at.Migration, begun = copyTo(nextDoor), true
				}
			case "again":
				if w.at.Migration.Run > 0 && !filling {
					w.at.Migration.Run++
				}
			case "fail":
				return errUnavailable
			}
			return nil
		}
		w.meanwhile = func(string) error {
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
			w.at.Migration = copyTo(nextDoor)
		}
		for w.at.Current.Location != nextDoor || len(jobs) > 0 {
			if len(jobs) > 0 && (w.at.Current.Location == nextDoor || rapid.Bool().Draw(t, "job first")) {
				run()
			} else {
				filling = rapid.Bool().Draw(t, "undisturbed")
				_ = x.Fill(context.Background(), "t", w.at.Migration.Run)
				filling = false
			}
		}
		live, indexed := w.state()
		if d := cmp.Diff(live, indexed); d != "" {
			t.Fatalf("-live +indexed\n%s", d)
		}
	})
}
