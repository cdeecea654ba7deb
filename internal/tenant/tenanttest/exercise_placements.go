package tenanttest

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f *fixture) ensurePlacement(t *testing.T) placement.Location {
	t.Helper()
	p, err := f.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	return p
}

func (f *fixture) reconcilePlacement(t *testing.T) placement.State {
	t.Helper()
	state, err := f.Store.ReconcilePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("ReconcilePlacement: %v", err)
	}
	return withoutModel(state)
}

// withoutModel removes what fakes do not know, the model of the vectors, and what is true of all
// tenants but those of outgrows.
func withoutModel(s placement.State) placement.State {
	s.Model, s.Generation, s.Current.Dimensions, s.Migration.Target.Dimensions, s.Outgrown = "", 0, 0, 0, false
	return s
}

func (f *fixture) setPartitionID(t *testing.T, at placement.Location, partitionID int64) {
	t.Helper()
	if err := f.Store.SetPartitionID(t.Context(), f.got.ID, at, partitionID); err != nil {
		t.Fatalf("SetPartitionID: %v", err)
	}
}

// wantPlacement checks the placement that Apply returns.
func (f *fixture) wantPlacement(t *testing.T, want placement.State) {
	t.Helper()
	f.apply(t)
	got := withoutModel(f.got.Placement)
	got.Migration = placement.Migration{Target: got.Migration.Target} // runs differ between stores
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
}

func placements(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	first := f.ensurePlacement(t)
	if first.Collection == "" || first.Partition == "" || first.Shared {
		t.Fatalf("EnsurePlacement = %+v, want a collection and a partition", first)
	}
	if second := f.ensurePlacement(t); second != first {
		t.Errorf("the second EnsurePlacement = %+v, want %+v again", second, first)
	}
	f.wantPlacement(t, placement.State{Current: placement.Placement{Location: first}})
	if theirs := other.ensurePlacement(t); theirs == first {
		t.Errorf("EnsurePlacement of another tenant = %+v, want another one", theirs)
	}
	if got := f.reconcilePlacement(t); got != withoutModel(f.got.Placement) {
		t.Errorf("ReconcilePlacement = %+v without a change, want %+v", got, f.got.Placement)
	}
}

func setsPartitionID(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	p := placement.Placement{Location: f.ensurePlacement(t), PartitionID: 41}
	f.setPartitionID(t, p.Location, p.PartitionID)
	f.wantPlacement(t, placement.State{Current: p})
	version := f.Version(t, f.got.ID)
	f.setPartitionID(t, p.Location, p.PartitionID)
	f.setPartitionID(t, placement.Location{Collection: "c", Partition: "another's"}, 42)
	if now := f.Version(t, f.got.ID); now != version {
		t.Errorf("SetPartitionID of a recorded id wrote: version %s became %s", version, now)
	}
	p.PartitionID = 43
	f.setPartitionID(t, p.Location, p.PartitionID)
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: p})
}

func marksLost(c check) {
	t, b := c.t, c.Backend
	spec := NewSpec()
	spec.Isolation = tenant.Shared
	one, other := &fixture{Backend: b, spec: spec}, &fixture{Backend: b, spec: NewSpec()}
	other.spec.Isolation = tenant.Shared
	own := applyTenant(t, b)
	id := rand.Int64N(1<<40) + 1
	var assigned []placement.Placement
	for _, f := range []*fixture{one, other, own} {
		f.apply(t)
		assigned = append(assigned, placement.Placement{Location: f.ensurePlacement(t), PartitionID: id})
		f.setPartitionID(t, assigned[len(assigned)-1].Location, id)
	}
	for range 2 {
		if err := b.Store.MarkLost(t.Context(), assigned[0]); err != nil {
			t.Fatalf("MarkLost: %v", err)
		}
	}
	assigned[0].PartitionID, assigned[1].PartitionID = 0, 0
	one.wantPlacement(t, placement.State{Current: assigned[0]})
	other.wantPlacement(t, placement.State{Current: assigned[1]})
	own.wantPlacement(t, placement.State{Current: assigned[2]})
	assigned[1].PartitionID = id + 1
	other.setPartitionID(t, assigned[1].Location, assigned[1].PartitionID)
	b.Work(t)
	other.wantPlacement(t, placement.State{Current: assigned[1]})
	if err := b.Store.MarkLost(t.Context(), assigned[2]); err != nil {
		t.Fatalf("MarkLost: %v", err)
	}
	assigned[2].PartitionID = 0
	own.wantPlacement(t, placement.State{Current: assigned[2]})
	other.wantPlacement(t, placement.State{Current: assigned[1]})
}

// lostForSome loses a shared collection. A tenant that recorded the loss, or that
// has no partition id yet, ensures it again before the other tenants recorded the loss.
func lostForSome(c check) {
	t, b := c.t, c.Backend
	partitions, other, migrating := NewIndex(), applyTenant(t, b), applyTenant(t, b)
	f, late := applyTenant(t, b), &fixture{Backend: b, spec: NewSpec()}
	ensure := func(f *fixture, p placement.Location) placement.Placement {
		id, err := placement.EnsurePartition(t.Context(), b.Store, partitions, placement.Placement{Location: p})
		if err != nil {
			t.Fatalf("EnsurePartition: %v", err)
		}
		f.setPartitionID(t, p, id)
		b.Work(t)
		return placement.Placement{Location: p, PartitionID: id}
	}
	for _, f := range []*fixture{f, other, late} {
		f.spec.Isolation = tenant.Shared
	}
	f.apply(t)
	other.apply(t)
	ensure(migrating, migrating.ensurePlacement(t))
	for name, recreate := range map[string]func(lost placement.Location) placement.Placement{
		"a tenant that recorded the loss": func(lost placement.Location) placement.Placement {
			f.setPartitionID(t, lost, 0)
			return ensure(f, lost)
		},
		"a new tenant": func(placement.Location) placement.Placement {
			late.apply(t)
			return ensure(late, late.ensurePlacement(t))
		},
		"a tenant that migrates there": func(placement.Location) placement.Placement {
			migrating.spec.Isolation = tenant.Shared
			migrating.apply(t)
			return ensure(migrating, migrating.reconcilePlacement(t).Migration.Target.Location)
		},
	} {
		old, theirs := ensure(f, f.ensurePlacement(t)), ensure(other, other.ensurePlacement(t))
		if old.PartitionID != theirs.PartitionID {
			t.Fatalf("two tenants are at %+v and %+v, want the same collection", old, theirs)
		}
		partitions.LosePartition(old.Location)
		if now := recreate(old.Location); now.Collection != old.Collection || now.PartitionID == old.PartitionID || now.PartitionID == 0 {
			t.Errorf("%s is at %+v, want the collection of %+v created again", name, now, old)
		}
		other.wantPlacement(t, placement.State{Current: placement.Placement{Location: theirs.Location}})
	}
}

func migrates(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	first := placement.Placement{Location: f.ensurePlacement(t), PartitionID: 41}
	f.setPartitionID(t, first.Location, first.PartitionID)
	theirs := placement.State{Current: placement.Placement{Location: other.ensurePlacement(t)}}

	f.spec.Isolation = tenant.Shared
	f.wantPlacement(t, placement.State{Current: first}) // until ReconcilePlacement is called
	next := f.reconcilePlacement(t).Migration.Target
	if !next.Shared || next.Partition == first.Partition || next.Collection == first.Collection || next.PartitionID != 0 {
		t.Fatalf("ReconcilePlacement gives %+v as the target, want a shared location", next)
	}
	if again := f.reconcilePlacement(t).Migration.Target; again != next {
		t.Errorf("the second ReconcilePlacement gives %+v, want %+v again", again, next)
	}
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: first, Migration: placement.Migration{Target: next}}) // the target does not exist yet
	next.PartitionID = 7
	f.setPartitionID(t, next.Location, next.PartitionID)
	f.wantPlacement(t, placement.State{Current: first, Migration: placement.Migration{Target: next}})
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: next})
	if got := f.ensurePlacement(t); got != next.Location {
		t.Errorf("EnsurePlacement = %+v after the migration, want %+v", got, next.Location)
	}

	f.spec.Isolation = tenant.Partition
	f.apply(t)
	back := f.reconcilePlacement(t).Migration.Target
	if back.Shared || back.Location == first.Location {
		t.Errorf("ReconcilePlacement gives %+v, want a partition that was never assigned before", back)
	}
	f.setPartitionID(t, back.Location, 8)
	f.spec.Isolation = tenant.Shared // changed back before the copy has finished
	f.apply(t)
	if got := f.reconcilePlacement(t); got != (placement.State{Current: next}) {
		t.Errorf("ReconcilePlacement = %+v after the isolation was changed back, want %+v only", got, next)
	}
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: next})
	other.wantPlacement(t, theirs)
}

// assignsShared applies tenants with shared isolation from the start.
func assignsShared(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	for _, f := range []*fixture{f, other} {
		f.spec.Isolation = tenant.Shared
		f.apply(t)
	}
	ours, theirs := f.ensurePlacement(t), other.ensurePlacement(t)
	if !ours.Shared || ours.Collection != theirs.Collection || ours.Partition == theirs.Partition {
		t.Errorf("two shared tenants are at %+v and %+v, want one collection and a key each", ours, theirs)
	}
}

// leavesIndex moves a tenant into the index and out of it.
func leavesIndex(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	first, err := b.Unindexed.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil || first.Indexed() || first.Partition == "" {
		t.Fatalf("EnsurePlacement = %+v, %v, want a name in no index", first, err)
	}
	nowhere := placement.State{Current: placement.Placement{Location: first}}
	f.wantPlacement(t, nowhere)
	f.wantUnindexed(t, nowhere)
	b.Fill(t, tenant.Scope{Tenant: f.got.ID, User: f.got.Users[0].ID}, 2, 0)

	target := f.reconcilePlacement(t).Migration.Target
	if !target.Indexed() || target.Shared || target.Partition == first.Partition {
		t.Fatalf("ReconcilePlacement gives %+v as the target, want a partition", target)
	}
	f.wantUnindexed(t, nowhere) // disabled before the migration has finished
	target = f.reconcilePlacement(t).Migration.Target
	target.PartitionID = 7
	f.setPartitionID(t, target.Location, target.PartitionID)
	f.wantPlacement(t, placement.State{Current: nowhere.Current, Migration: placement.Migration{Target: target}})
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: target})

	theirs := placement.Placement{Location: other.ensurePlacement(t), PartitionID: 8}
	other.setPartitionID(t, theirs.Location, theirs.PartitionID)
	f.setPartitionID(t, target.Location, 9) // the partition was lost and is being filled again
	left := placement.State{Current: placement.Placement{Location: placement.Location{Partition: target.Partition}}}
	f.wantUnindexed(t, left)
	b.Work(t)
	f.wantPlacement(t, left)
	other.wantPlacement(t, placement.State{Current: theirs})

	if again := f.reconcilePlacement(t).Migration.Target; !again.Indexed() || again.Location == target.Location {
		t.Errorf("ReconcilePlacement gives %+v, want a partition that was never assigned before", again)
	}
	f.wantUnindexed(t, left)
	remaining, err := b.Store.Retire(t.Context(), f.spec.ID, tenant.Delete)
	if err != nil || len(remaining.Locations) > 0 {
		t.Errorf("Retire = %+v, %v, want no location to drop", remaining, err)
	}
}

// wantUnindexed checks what ReconcilePlacement returns without an index, twice.
func (f *fixture) wantUnindexed(t *testing.T, want placement.State) {
	t.Helper()
	for range 2 {
		got, err := f.Unindexed.ReconcilePlacement(t.Context(), f.got.ID)
		if err != nil {
			t.Fatalf("ReconcilePlacement without an index: %v", err)
		}
		if diff := cmp.Diff(want, withoutModel(got)); diff != "" {
			t.Errorf("placement without an index (-want +got):\n%s", diff)
		}
	}
}
