package retrieve

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// world is a database and an index in memory. Before each call that reaches
// either, meanwhile runs: what others do at that moment.
type world struct {
	live      map[UnitID]bool
	vectors   map[UnitID][]float32
	confirmed map[UnitID]bool
	indexed   map[UnitID]Entry // in somewhere
	elsewhere map[UnitID]Entry // in the target of the migration
	at        placement.State
	assigned  bool
	meanwhile func(what string) error
}

func newWorld() *world {
	return &world{live: map[UnitID]bool{}, vectors: map[UnitID][]float32{}, confirmed: map[UnitID]bool{},
		indexed: map[UnitID]Entry{}, elsewhere: map[UnitID]Entry{}, at: placement.State{Current: placement.Placement{Location: somewhere}}, assigned: true, meanwhile: func(string) error { return nil }}
}

func (w *world) indexer() *Indexer { return NewIndexer(w, worldIndex{w}, worldEmbedder{w}) }

func (w *world) Load(_ context.Context, _ tenant.ID, ids []UnitID) ([]OwnedUnit, error) {
	if err := w.meanwhile("load"); err != nil {
		return nil, err
	}
	var out []OwnedUnit
	for _, id := range ids {
		if w.live[id] {
			out = append(out, OwnedUnit{User: 7, Unit: Unit{ID: id, Kind: Memory, Group: 3, Dense: "text", Vector: w.vectors[id]}})
		}
	}
	return out, nil
}

func (w *world) SaveVectors(_ context.Context, _ tenant.ID, vectors map[UnitID][]float32) error {
	if err := w.meanwhile("save"); err != nil {
		return err
	}
	maps.Copy(w.vectors, vectors)
	return nil
}

func (w *world) Confirm(_ context.Context, _ tenant.ID, ids []UnitID) error {
	if err := w.meanwhile("confirm"); err != nil {
		return err
	}
	for _, id := range ids {
		w.confirmed[id] = true
	}
	return nil
}

func (w *world) Live(_ context.Context, _ tenant.ID, after UnitID, limit int) ([]UnitID, error) {
	if err := w.meanwhile("live"); err != nil {
		return nil, err
	}
	ids := maps.Keys(w.live)
	return pageOf(slices.Sorted(ids), after, limit), nil
}

func (w *world) GetPlacement(context.Context, tenant.ID) (placement.State, error) {
	if !w.assigned {
		return placement.State{}, fault.New(fault.NotFound, "no placement")
	}
	if err := w.meanwhile("placement"); err != nil {
		return placement.State{}, err
	}
	return w.at, nil
}

func (w *world) AdvanceMigration(_ context.Context, _ tenant.ID, run int64, cursor UnitID) (bool, error) {
	if err := w.meanwhile("advance"); err != nil {
		return false, err
	}
	if w.at.Migration.Run != run {
		return false, nil
	}
	w.at.Migration.Cursor = max(w.at.Migration.Cursor, int64(cursor))
	return true, nil
}

// CompleteMigration makes the target the current location.
func (w *world) CompleteMigration(_ context.Context, _ tenant.ID, run int64) error {
	if err := w.meanwhile("complete"); err != nil {
		return err
	}
	if w.at.Migration.Run == run && w.at.Migrating() {
		w.indexed, w.elsewhere = w.elsewhere, map[UnitID]Entry{}
	}
	if w.at.Migration.Run == run {
		w.at = placement.State{Current: placement.Placement{Location: w.at.Migration.Target.Location}}
	}
	return nil
}

// entries returns the entries of a location. Writes to an unused location are lost.
func (w *world) entries(p placement.Location) map[UnitID]Entry {
	switch p {
	case w.at.Current.Location:
		return w.indexed
	case w.at.Migration.Target.Location:
		return w.elsewhere
	}
	return map[UnitID]Entry{}
}

func pageOf(sorted []UnitID, after UnitID, limit int) []UnitID {
	sorted = slices.DeleteFunc(sorted, func(id UnitID) bool { return id <= after })
	return sorted[:min(limit, len(sorted))]
}

type worldIndex struct{ *world }

func (w worldIndex) Search(context.Context, tenant.Scope, placement.Location, Query, []float32) ([]Hit, error) {
	panic("not searched")
}

func (w worldIndex) Upsert(_ context.Context, _ tenant.ID, p placement.Location, entries []Entry) error {
	if err := w.meanwhile("upsert"); err != nil {
		return err
	}
	for _, e := range entries {
		w.entries(p)[e.ID] = e
	}
	return nil
}

func (w worldIndex) Delete(_ context.Context, _ tenant.ID, p placement.Location, ids []UnitID) error {
	if err := w.meanwhile("delete"); err != nil {
		return err
	}
	for _, id := range ids {
		delete(w.entries(p), id)
	}
	return nil
}

func (w worldIndex) Drop(_ context.Context, p placement.Location) error {
	clear(w.entries(p))
	return nil
}

func (w worldIndex) List(_ context.Context, _ tenant.ID, p placement.Location, after UnitID, limit int) ([]UnitID, error) {
	if err := w.meanwhile("list"); err != nil {
		return nil, err
	}
	return pageOf(slices.Sorted(maps.Keys(w.entries(p))), after, limit), nil
}

type worldEmbedder struct{ *world }

func (w worldEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if err := w.meanwhile("embed"); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1}
	}
	return out, nil
}
func (worldEmbedder) Model() string   { return "test" }
func (worldEmbedder) Dimensions() int { return 1 }

func (w *world) state() (live, indexed []UnitID) {
	return slices.Sorted(maps.Keys(w.live)), slices.Sorted(maps.Keys(w.indexed))
}

func TestSyncWritesAndRemoves(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.live[1], w.live[2] = true, true
	w.vectors[2] = []float32{2}
	w.indexed[3] = Entry{ID: 3}
	if err := w.indexer().Sync(t.Context(), "t", []UnitID{1, 2, 3, 2}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	want := map[UnitID]Entry{
		1: {ID: 1, User: 7, Kind: Memory, Group: 3, Vector: []float32{1}},
		2: {ID: 2, User: 7, Kind: Memory, Group: 3, Vector: []float32{2}},
	}
	if d := cmp.Diff(want, w.indexed); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff(map[UnitID]bool{1: true, 2: true}, w.confirmed); d != "" {
		t.Errorf("confirmed: -want +got\n%s", d)
	}
	if d := cmp.Diff([]float32{1}, w.vectors[1]); d != "" {
		t.Errorf("saved vector: -want +got\n%s", d)
	}
}

func TestSyncWithoutPlacement(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.assigned = false
	w.live[1] = true
	x := w.indexer()
	if err := x.Sync(t.Context(), "t", []UnitID{1}); err != nil || len(w.indexed) > 0 {
		t.Errorf("Sync = %v with %d entries, want nothing done", err, len(w.indexed))
	}
	if err := x.Rebuild(t.Context(), "t"); err != nil {
		t.Errorf("Rebuild = %v, want nil", err)
	}
	if d, err := x.Sweep(t.Context(), "t"); err != nil || d != (Drift{}) {
		t.Errorf("Sweep = %v, %v, want no drift", d, err)
	}
}

func TestSyncDoesWhatItCanWithoutTheEmbedder(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.live[1], w.live[2] = true, true
	w.vectors[1] = []float32{1}
	w.indexed[3] = Entry{ID: 3}
	w.meanwhile = func(what string) error {
		if what == "embed" {
			return errUnavailable
		}
		return nil
	}
	if err := w.indexer().Sync(t.Context(), "t", []UnitID{1, 2, 3}); !errors.Is(err, errUnavailable) {
		t.Errorf("Sync = %v, want the embedder's error so that the job is tried again", err)
	}
	if _, indexed := w.state(); !slices.Equal(indexed, []UnitID{1}) || !w.confirmed[1] || w.confirmed[2] {
		t.Errorf("indexed %v, confirmed %v, want unit 1 done and 3 removed", indexed, w.confirmed)
	}
}

func TestSyncEmbedsAgainForAnotherModel(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.live[1] = true
	w.vectors[1] = []float32{1, 2, 3}
	if err := w.indexer().Sync(t.Context(), "t", []UnitID{1}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	if d := cmp.Diff([]float32{1}, w.indexed[1].Vector); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSyncGivesUpOnRestlessUnits(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.meanwhile = func(what string) error {
		if what == "load" {
			if w.live[1] {
				delete(w.live, 1)
			} else {
				w.live[1] = true
			}
		}
		return nil
	}
	if err := w.indexer().Sync(t.Context(), "t", []UnitID{1}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Sync = %v, want Unavailable", err)
	}
}

// At every call to a store others may change units, each change with its job,
// and run jobs that wait; calls fail too. When all jobs are through, the index
// holds the live units and nothing else.
func TestSyncInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		x := w.indexer()
		var jobs [][]UnitID
		depth, changes := 0, 60
		change := func() {
			id := UnitID(rapid.IntRange(1, 3).Draw(t, "unit"))
			if w.live[id] {
				delete(w.live, id)
			} else {
				w.live[id] = true
			}
			w.confirmed[id] = false
			jobs = append(jobs, []UnitID{id})
		}
		run := func() {
			i := rapid.IntRange(0, len(jobs)-1).Draw(t, "job")
			job := jobs[i]
			jobs = slices.Delete(jobs, i, i+1)
			depth++
			defer func() { depth-- }()
			if err := x.Sync(context.Background(), "t", job); err != nil {
				jobs = append(jobs, job) // as River does
			}
		}
		w.meanwhile = func(string) error {
			for changes > 0 {
				changes--
				switch rapid.SampledFrom([]string{"nothing", "change", "run", "run all", "fail"}).Draw(t, "event") {
				case "nothing":
					return nil
				case "change":
					change()
				case "run":
					if len(jobs) > 0 && depth < 4 {
						run()
					}
				case "run all":
					for n := len(jobs); n > 0 && len(jobs) > 0 && depth < 4; n-- {
						run()
					}
				case "fail":
					return errUnavailable
				}
			}
			return nil
		}
		for range rapid.IntRange(1, 6).Draw(t, "starts") {
			change()
		}
		for len(jobs) > 0 {
			run()
		}
		live, indexed := w.state()
		if d := cmp.Diff(live, indexed); d != "" {
			t.Fatalf("-live +indexed\n%s", d)
		}
		for _, id := range live {
			if !w.confirmed[id] {
				t.Fatalf("unit %d is not confirmed", id)
			}
		}
	})
}

func TestSweepAndRebuild(t *testing.T) {
	t.Parallel()
	for _, n := range []UnitID{0, 10, syncBatch, sweepPage, 2*sweepPage + 7} {
		w := newWorld()
		want := Drift{}
		for id := UnitID(1); id <= n; id++ {
			inLive, inIndex := id%7 != 0, id%5 != 0
			if inLive {
				w.live[id] = true
				w.vectors[id] = []float32{1}
			}
			if inIndex {
				w.indexed[id] = Entry{ID: id}
			}
			if inLive && !inIndex {
				want.Missing++
			}
			if inIndex && !inLive {
				want.Orphaned++
			}
		}
		x := w.indexer()
		for round, want := range []Drift{want, {}} {
			got, err := x.Sweep(t.Context(), "t")
			if err != nil || got != want {
				t.Errorf("%d units, sweep %d = %+v, %v, want %+v", n, round, got, err, want)
			}
		}
		clear(w.indexed)
		w.indexed[n+100] = Entry{ID: n + 100}
		if err := x.Rebuild(t.Context(), "t"); err != nil {
			t.Fatalf("Rebuild: %v", err)
		}
		if live, indexed := w.state(); !slices.Equal(live, indexed) {
			t.Errorf("%d units: after Rebuild the index differs", n)
		}
	}
}
