package indexing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// env is an in-memory database and index. onCall runs before each call to either and
// simulates concurrent activity.
type env struct {
	live    map[retrieve.UnitID]bool
	vectors map[retrieve.UnitID][]float32
	// vectorGeneration is that of the vectors.
	vectorGeneration placement.GenerationID
	confirmed        map[retrieve.UnitID]bool
	indexed          map[retrieve.UnitID]Entry // in the current placement
	migrated         map[retrieve.UnitID]Entry // in the target of the migration
	at               placement.State
	assigned         bool
	onCall           func(name string) error
}

var (
	errUnavailable = fault.New(fault.Unavailable, "unavailable")
	homeLocation   = placement.Location{Collection: "c", Partition: "p"}
)

func newEnv() *env {
	return &env{live: map[retrieve.UnitID]bool{}, vectors: map[retrieve.UnitID][]float32{}, confirmed: map[retrieve.UnitID]bool{},
		indexed: map[retrieve.UnitID]Entry{}, migrated: map[retrieve.UnitID]Entry{}, at: placement.State{Current: placement.Placement{Location: homeLocation}}, assigned: true, onCall: func(string) error { return nil }}
}

func (e *env) indexer() *Indexer {
	return NewIndexer(e, envIndex{e}, retrieve.Embedders{0: envEmbedder{e}}, slog.New(slog.DiscardHandler))
}

func (e *env) Load(_ context.Context, _ tenant.ID, ids []retrieve.UnitID) ([]OwnedUnit, error) {
	if err := e.onCall("load"); err != nil {
		return nil, err
	}
	var out []OwnedUnit
	for _, id := range ids {
		if e.live[id] {
			out = append(out, OwnedUnit{User: userOf(id), Unit: retrieve.Unit{ID: id, Kind: retrieve.Memory, Group: 3, Dense: fmt.Sprint("text ", id)}, Vectors: e.vectorsOf(id)})
		}
	}
	return out, nil
}

// userOf returns the user of a unit: one of two.
func userOf(id retrieve.UnitID) tenant.UserID { return 7 + tenant.UserID(id%2) }

func (e *env) vectorsOf(id retrieve.UnitID) map[placement.GenerationID][]float32 {
	if e.vectors[id] == nil {
		return nil
	}
	return map[placement.GenerationID][]float32{e.vectorGeneration: e.vectors[id]}
}

func (e *env) SaveVectors(ctx context.Context, _ tenant.ID, users []tenant.UserID, _ placement.GenerationID, embedded []retrieve.Unit, confirmed []retrieve.UnitID) error {
	if err := errors.Join(ctx.Err(), e.onCall("save")); err != nil {
		return err
	}
	for _, u := range embedded {
		if slices.Contains(users, userOf(u.ID)) {
			e.vectors[u.ID] = u.Vector
		}
	}
	e.confirmUnits(users, confirmed)
	return nil
}

// confirmUnits confirms the units of the users only, as the database does.
func (e *env) confirmUnits(users []tenant.UserID, ids []retrieve.UnitID) {
	for _, id := range ids {
		if slices.Contains(users, userOf(id)) {
			e.confirmed[id] = true
		}
	}
}

func (e *env) LiveOf(_ context.Context, _ tenant.ID, ids []retrieve.UnitID) ([]retrieve.UnitID, error) {
	if err := e.onCall("live of"); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id retrieve.UnitID) bool { return !e.live[id] }), nil
}

func (e *env) Confirm(_ context.Context, _ tenant.ID, users []tenant.UserID, ids []retrieve.UnitID) error {
	if err := e.onCall("confirm"); err != nil {
		return err
	}
	e.confirmUnits(users, ids)
	return nil
}

func (e *env) Unconfirmed(_ context.Context, _ tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error) {
	if err := e.onCall("unconfirmed"); err != nil {
		return nil, err
	}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(e.live)), func(id retrieve.UnitID) bool { return e.confirmed[id] })
	return pageOf(ids, after, limit), nil
}

func (e *env) CountConfirmed(_ context.Context, _ tenant.ID, ids []retrieve.UnitID) (n int, err error) {
	for _, id := range ids {
		if e.confirmed[id] {
			n++
		}
	}
	return n, nil
}

func (e *env) Live(_ context.Context, _ tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error) {
	if err := e.onCall("live"); err != nil {
		return nil, err
	}
	ids := maps.Keys(e.live)
	return pageOf(slices.Sorted(ids), after, limit), nil
}

func (e *env) GetPlacement(context.Context, tenant.ID) (placement.State, error) {
	if !e.assigned {
		return placement.State{}, fault.New(fault.NotFound, "no placement")
	}
	if err := e.onCall("placement"); err != nil {
		return placement.State{}, err
	}
	return e.at, nil
}

func (e *env) AdvanceMigration(_ context.Context, _ tenant.ID, run int64, cursor retrieve.UnitID) (bool, error) {
	if err := e.onCall("advance"); err != nil {
		return false, err
	}
	if e.at.Migration.Run != run {
		return false, nil
	}
	e.at.Migration.Cursor = max(e.at.Migration.Cursor, int64(cursor))
	return true, nil
}

// CompleteMigration makes the target the current location.
func (e *env) CompleteMigration(_ context.Context, _ tenant.ID, run int64) error {
	if err := e.onCall("complete"); err != nil {
		return err
	}
	if e.at.Migration.Run == run && e.at.Migrating() {
		e.indexed, e.migrated = e.migrated, map[retrieve.UnitID]Entry{}
	}
	if e.at.Migration.Run == run {
		e.at = placement.State{Current: placement.Placement{Location: e.at.Migration.Target.Location}}
	}
	return nil
}

// entries returns the entries of a location. Writes to an unused location are lost.
func (e *env) entries(p placement.Location) map[retrieve.UnitID]Entry {
	if !p.Indexed() {
		panic("the index was called with a location in no index")
	}
	switch p {
	case e.at.Current.Location:
		return e.indexed
	case e.at.Migration.Target.Location:
		return e.migrated
	}
	return map[retrieve.UnitID]Entry{}
}

func pageOf(sorted []retrieve.UnitID, after retrieve.UnitID, limit int) []retrieve.UnitID {
	sorted = slices.DeleteFunc(sorted, func(id retrieve.UnitID) bool { return id <= after })
	return sorted[:min(limit, len(sorted))]
}

type envIndex struct{ *env }

func (e envIndex) Search(context.Context, tenant.Scope, placement.Location, retrieve.Request, []float32) ([]retrieve.Hit, error) {
	panic("Search is not implemented")
}

func (e envIndex) Upsert(_ context.Context, _ tenant.ID, p placement.Location, entries []Entry) error {
	if err := e.onCall("upsert"); err != nil {
		return err
	}
	for _, entry := range entries {
		e.entries(p)[entry.ID] = entry
	}
	return nil
}

func (e envIndex) Delete(_ context.Context, _ tenant.ID, p placement.Location, ids []retrieve.UnitID) error {
	if err := e.onCall("delete"); err != nil {
		return err
	}
	for _, id := range ids {
		delete(e.entries(p), id)
	}
	return nil
}

func (e envIndex) Drop(_ context.Context, p placement.Location) error {
	clear(e.entries(p))
	return nil
}

func (e envIndex) List(_ context.Context, _ tenant.ID, p placement.Location, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error) {
	if err := e.onCall("list"); err != nil {
		return nil, err
	}
	return pageOf(slices.Sorted(maps.Keys(e.entries(p))), after, limit), nil
}

type envEmbedder struct{ *env }

func (e envEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if err := e.onCall("embed"); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1}
	}
	return out, nil
}
func (envEmbedder) EmbedQuery(context.Context, string) ([]float32, error) {
	return nil, errors.New("a unit was embedded as a query")
}
func (envEmbedder) Model() string   { return "test" }
func (envEmbedder) Dimensions() int { return 1 }

func (e *env) state() (live, indexed []retrieve.UnitID) {
	return slices.Sorted(maps.Keys(e.live)), slices.Sorted(maps.Keys(e.indexed))
}

func TestSyncWritesAndRemoves(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1], e.live[2] = true, true
	e.vectors[2] = []float32{2}
	e.indexed[3] = Entry{ID: 3}
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1, 2, 3, 2}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	want := map[retrieve.UnitID]Entry{
		1: {ID: 1, User: int64(userOf(1)), Kind: retrieve.Memory, Group: 3, Vector: []float32{1}},
		2: {ID: 2, User: int64(userOf(2)), Kind: retrieve.Memory, Group: 3, Vector: []float32{2}},
	}
	if d := cmp.Diff(want, e.indexed); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff(map[retrieve.UnitID]bool{1: true, 2: true}, e.confirmed); d != "" {
		t.Errorf("confirmed: -want +got\n%s", d)
	}
	if d := cmp.Diff([]float32{1}, e.vectors[1]); d != "" {
		t.Errorf("saved vector: -want +got\n%s", d)
	}
}

func TestSyncWithoutPlacement(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.assigned = false
	e.live[1] = true
	x := e.indexer()
	if err := x.Sync(t.Context(), "t", []retrieve.UnitID{1, 2}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Sync of a live unit = %v, want Unavailable", err)
	}
	if err := x.Sync(t.Context(), "t", []retrieve.UnitID{2}); err != nil {
		t.Errorf("Sync of a deleted unit = %v, want nil", err)
	}
	if n := len(e.indexed); n != 0 {
		t.Errorf("Sync indexed %d units, want none", n)
	}
	if err := x.Rebuild(t.Context(), "t"); err != nil {
		t.Errorf("Rebuild = %v, want nil", err)
	}
	if d, err := x.Sweep(t.Context(), "t"); err != nil || d != (Drift{}) {
		t.Errorf("Sweep = %v, %v, want no drift", d, err)
	}
}

func TestSyncWithoutEmbedder(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1], e.live[2] = true, true
	e.vectors[1] = []float32{1}
	e.indexed[3] = Entry{ID: 3}
	e.onCall = func(call string) error {
		if call == "embed" {
			return errUnavailable
		}
		return nil
	}
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1, 2, 3}); !errors.Is(err, errUnavailable) {
		t.Errorf("Sync = %v, want the embedder's error, so that the job is retried", err)
	}
	if _, indexed := e.state(); !slices.Equal(indexed, []retrieve.UnitID{1}) {
		t.Errorf("indexed %v, want unit 1 only", indexed)
	}
	if !e.confirmed[1] {
		t.Error("unit 1, which has a vector, is not confirmed")
	}
	if e.confirmed[2] {
		t.Error("unit 2, which has no vector, is confirmed")
	}
}

// A vector of another model never enters the index, even if it has the same length.
func TestSyncReplacesVectorsOfAnotherModel(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1] = true
	e.vectors[1], e.vectorGeneration = []float32{-1}, 9
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	if d := cmp.Diff([]float32{1}, e.indexed[1].Vector); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A server without the tenant's model writes no vectors of its own.
func TestSyncWithoutTheModel(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1] = true
	e.at.Generation = 9
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1}); !fault.Is(err, fault.Unavailable) || !errors.Is(err, retrieve.ErrNoEmbedder) {
		t.Errorf("Sync = %v, want Unavailable: no embedder", err)
	}
	if len(e.indexed) > 0 || len(e.vectors) > 0 || e.confirmed[1] {
		t.Errorf("indexed %v, saved %v, confirmed %v, want nothing", e.indexed, e.vectors, e.confirmed)
	}
}

func TestSyncFailsIfUnitsKeepChanging(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.onCall = func(call string) error {
		if call == "load" || call == "live of" {
			if e.live[1] {
				delete(e.live, 1)
			} else {
				e.live[1] = true
			}
		}
		return nil
	}
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Sync = %v, want Unavailable", err)
	}
}

// Concurrent changes, each with its job, other jobs and failures can occur at every call
// to a store. After all jobs have completed, the index contains exactly the live units.
func TestSyncInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := newEnv()
		x := e.indexer()
		var jobs [][]retrieve.UnitID
		depth, changes := 0, 60
		change := func() {
			id := retrieve.UnitID(rapid.IntRange(1, 3).Draw(t, "unit"))
			if e.live[id] {
				delete(e.live, id)
			} else {
				e.live[id] = true
			}
			e.confirmed[id] = false
			jobs = append(jobs, []retrieve.UnitID{id})
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
		e.onCall = func(string) error {
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
		live, indexed := e.state()
		if d := cmp.Diff(live, indexed); d != "" {
			t.Fatalf("-live +indexed\n%s", d)
		}
		for _, id := range live {
			if !e.confirmed[id] {
				t.Fatalf("unit %d is not confirmed", id)
			}
		}
	})
}

func TestSweepAndRebuild(t *testing.T) {
	t.Parallel()
	for _, n := range []retrieve.UnitID{0, 10, syncBatch, sweepPage, 2*sweepPage + 7} {
		e := newEnv()
		want := Drift{}
		for id := retrieve.UnitID(1); id <= n; id++ {
			inLive, inIndex := id%7 != 0, id%5 != 0
			if inLive {
				e.live[id] = true
				e.vectors[id] = []float32{1}
			}
			if inIndex {
				e.indexed[id] = Entry{ID: id}
			}
			if inLive && id%3 == 0 {
				e.confirmed[id] = true
			}
			if inLive && (!inIndex || !e.confirmed[id]) {
				want.Missing++
			}
			if e.confirmed[id] && !inIndex {
				want.Lost++
			}
			if inIndex && !inLive {
				want.Orphaned++
			}
		}
		x := e.indexer()
		for round, want := range []Drift{want, {}} {
			got, err := x.Sweep(t.Context(), "t")
			if err != nil || got != want {
				t.Errorf("%d units: sweep %d = %+v, %v, want %+v", n, round, got, err, want)
			}
		}
		clear(e.indexed)
		e.indexed[n+100] = Entry{ID: n + 100}
		if err := x.Rebuild(t.Context(), "t"); err != nil {
			t.Fatalf("Rebuild: %v", err)
		}
		if live, indexed := e.state(); !slices.Equal(live, indexed) {
			t.Errorf("%d units: the index differs from the live units after Rebuild", n)
		}
	}
}
