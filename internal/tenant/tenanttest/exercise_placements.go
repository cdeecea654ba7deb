package tenanttest

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f *fixture) place(t *testing.T) placement.Location {
	t.Helper()
	p, err := f.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	return p
}

func (f *fixture) move(t *testing.T) placement.State {
	t.Helper()
	places, err := f.Store.ReconcilePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("ReconcilePlacement: %v", err)
	}
	return places
}

func (f *fixture) refill(t *testing.T, p placement.Location, made int64) {
	t.Helper()
	if err := f.Store.SetPartitionID(t.Context(), f.got.ID, p, made); err != nil {
		t.Fatalf("SetPartitionID: %v", err)
	}
}

// wantPlacement checks the placement that Apply returns.
func (f *fixture) wantPlacement(t *testing.T, want placement.State) {
	t.Helper()
	f.apply(t)
	got := f.got.Placement
	got.Migration = placement.Migration{Target: got.Migration.Target} // runs differ between stores
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
}

func placements(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
	first := f.place(t)
	if first.Collection == "" || first.Partition == "" || first.Shared {
		t.Fatalf("EnsurePlacement = %+v, want a collection and a partition", first)
	}
	if second := f.place(t); second != first {
		t.Errorf("the second EnsurePlacement = %+v, want %+v again", second, first)
	}
	f.wantPlacement(t, placement.State{Current: placement.Placement{Location: first}})
	if theirs := other.place(t); theirs == first {
		t.Errorf("EnsurePlacement of another tenant = %+v, want another one", theirs)
	}
	if got := f.move(t); got != f.got.Placement {
		t.Errorf("ReconcilePlacement = %+v without a reason, want %+v", got, f.got.Placement)
	}
}

func refills(c check) {
	t, b := c.t, c.Backend
	f := applied(t, b)
	place := placement.Placement{Location: f.place(t), PartitionID: 41}
	f.refill(t, place.Location, place.PartitionID)
	f.wantPlacement(t, placement.State{Current: place})
	version := f.Version(t, f.got.ID)
	f.refill(t, place.Location, place.PartitionID)
	f.refill(t, placement.Location{Collection: "c", Partition: "another's"}, 42)
	if now := f.Version(t, f.got.ID); now != version {
		t.Errorf("SetPartitionID of a recorded id wrote: version %s became %s", version, now)
	}
	place.PartitionID = 43
	f.refill(t, place.Location, place.PartitionID)
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: place})
}

func loses(c check) {
	t, b := c.t, c.Backend
	spec := NewSpec()
	spec.Isolation = tenant.Shared
	one, other := &fixture{Backend: b, spec: spec}, &fixture{Backend: b, spec: NewSpec()}
	other.spec.Isolation = tenant.Shared
	own := applied(t, b)
	made := rand.Int64N(1<<40) + 1
	var places []placement.Placement
	for _, f := range []*fixture{one, other, own} {
		f.apply(t)
		places = append(places, placement.Placement{Location: f.place(t), PartitionID: made})
		f.refill(t, places[len(places)-1].Location, made)
	}
	for range 2 {
		if err := b.Store.MarkLost(t.Context(), places[0]); err != nil {
			t.Fatalf("MarkLost: %v", err)
		}
	}
	places[0].PartitionID, places[1].PartitionID = 0, 0
	one.wantPlacement(t, placement.State{Current: places[0]})
	other.wantPlacement(t, placement.State{Current: places[1]})
	own.wantPlacement(t, placement.State{Current: places[2]})
	places[1].PartitionID = made + 1
	other.refill(t, places[1].Location, places[1].PartitionID)
	b.Work(t)
	other.wantPlacement(t, placement.State{Current: places[1]})
	if err := b.Store.MarkLost(t.Context(), places[2]); err != nil {
		t.Fatalf("MarkLost: %v", err)
	}
	places[2].PartitionID = 0
	own.wantPlacement(t, placement.State{Current: places[2]})
	other.wantPlacement(t, placement.State{Current: places[1]})
}

// lostForSome is of a shared collection that was lost, and is asked for by one
// who was told of it, or knows no number yet, before the others were told.
func lostForSome(c check) {
	t, b := c.t, c.Backend
	partitions, other, moving := NewFake(), applied(t, b), applied(t, b)
	f, late := applied(t, b), &fixture{Backend: b, spec: NewSpec()}
	ensure := func(f *fixture, p placement.Location) placement.Placement {
		made, err := placement.EnsurePartition(t.Context(), b.Store, partitions, placement.Placement{Location: p})
		if err != nil {
			t.Fatalf("EnsurePartition: %v", err)
		}
		f.refill(t, p, made)
		b.Work(t)
		return placement.Placement{Location: p, PartitionID: made}
	}
	for _, f := range []*fixture{f, other, late} {
		f.spec.Isolation = tenant.Shared
	}
	f.apply(t)
	other.apply(t)
	ensure(moving, moving.place(t))
	for who, ask := range map[string]func(lost placement.Location) placement.Placement{
		"one who was told": func(lost placement.Location) placement.Placement { f.refill(t, lost, 0); return ensure(f, lost) },
		"one who is new":   func(placement.Location) placement.Placement { late.apply(t); return ensure(late, late.place(t)) },
		"one who moves there": func(placement.Location) placement.Placement {
			moving.spec.Isolation = tenant.Shared
			moving.apply(t)
			return ensure(moving, moving.move(t).Migration.Target.Location)
		},
	} {
		was, theirs := ensure(f, f.place(t)), ensure(other, other.place(t))
		if was.PartitionID != theirs.PartitionID {
			t.Fatalf("two are at %+v and %+v, want the same collection", was, theirs)
		}
		partitions.TakeAway(was.Location)
		if now := ask(was.Location); now.Collection != was.Collection || now.PartitionID == was.PartitionID || now.PartitionID == 0 {
			t.Errorf("%s is at %+v, want the collection of %+v made again", who, now, was)
		}
		other.wantPlacement(t, placement.State{Current: placement.Placement{Location: theirs.Location}})
	}
}

func moves(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
	first := placement.Placement{Location: f.place(t), PartitionID: 41}
	f.refill(t, first.Location, first.PartitionID)
	theirs := placement.State{Current: placement.Placement{Location: other.place(t)}}

	f.spec.Isolation = tenant.Shared
	f.wantPlacement(t, placement.State{Current: first}) // until ReconcilePlacement is called
	next := f.move(t).Migration.Target
	if !next.Shared || next.Partition == first.Partition || next.Collection == first.Collection || next.PartitionID != 0 {
		t.Fatalf("ReconcilePlacement gives %+v as the target, want a shared location", next)
	}
	if again := f.move(t).Migration.Target; again != next {
		t.Errorf("the second ReconcilePlacement gives %+v, want %+v again", again, next)
	}
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: first, Migration: placement.Migration{Target: next}}) // the target does not exist yet
	next.PartitionID = 7
	f.refill(t, next.Location, next.PartitionID)
	f.wantPlacement(t, placement.State{Current: first, Migration: placement.Migration{Target: next}})
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: next})
	if got := f.place(t); got != next.Location {
		t.Errorf("EnsurePlacement = %+v after the move, want %+v", got, next.Location)
	}

	f.spec.Isolation = tenant.Partition
	f.apply(t)
	back := f.move(t).Migration.Target
	if back.Shared || back.Location == first.Location {
		t.Errorf("ReconcilePlacement gives %+v, want a partition that was never assigned before", back)
	}
	f.refill(t, back.Location, 8)
	f.spec.Isolation = tenant.Shared // changed back before the copy has finished
	f.apply(t)
	if got := f.move(t); got != (placement.State{Current: next}) {
		t.Errorf("ReconcilePlacement = %+v after the isolation was changed back, want %+v only", got, next)
	}
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: next})
	other.wantPlacement(t, theirs)
}

// placedShared is of a tenant that asks for it from the start.
func placedShared(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
	for _, f := range []*fixture{f, other} {
		f.spec.Isolation = tenant.Shared
		f.apply(t)
	}
	ours, theirs := f.place(t), other.place(t)
	if !ours.Shared || ours.Collection != theirs.Collection || ours.Partition == theirs.Partition {
		t.Errorf("two shared tenants are at %+v and %+v, want one collection and a key each", ours, theirs)
	}
}
