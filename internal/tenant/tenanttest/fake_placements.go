package tenanttest

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// EnsurePlacement implements tenant.PlacementStore.
func (f *Fake) EnsurePlacement(_ context.Context, id tenant.ID) (got placement.Location, err error) {
	defer f.begin("EnsurePlacement", &err)()
	if err != nil {
		return placement.Location{}, err
	}
	r, err := f.row(id)
	if err != nil {
		return placement.Location{}, err
	}
	if !r.placement.Assigned() {
		r.placement.Outgrown = r.outgrown
		cell, err := f.selectCell(r)
		if err != nil {
			return placement.Location{}, err
		}
		r.placement.Current.Location = f.newLocation(f.wantedKind(r), cell)
		r.version++
	}
	return r.placement.Current.Location, nil
}

func (f *Fake) wantedKind(r *row) placement.Kind {
	if f.unindexed {
		return placement.Unindexed
	}
	return r.placement.Wanted(r.spec.Isolation.Kind())
}

// newLocation returns an unused location.
func (f *Fake) newLocation(kind placement.Kind, cell string) placement.Location {
	f.locations++
	at := placement.Location{Partition: fmt.Sprintf("t%d", f.locations)}
	switch kind {
	case placement.Own:
		at.Cell, at.Collection = cell, "units_1"
	case placement.Shared:
		at.Cell, at.Collection, at.Shared = cell, "units_shared_1", true
	case placement.Unindexed:
	}
	return at
}

// leaveIndex makes the placement of the row unindexed.
func (f *Fake) leaveIndex(r *row) {
	for _, at := range r.placement.Locations() {
		f.drop(at)
	}
	r.placement = placement.State{Current: placement.Placement{Location: placement.Location{Partition: r.placement.Current.Partition}}, Outgrown: r.placement.Outgrown}
	r.lost = false
	r.version++
}

// ReconcilePlacement implements tenant.PlacementStore.
func (f *Fake) ReconcilePlacement(_ context.Context, id tenant.ID) (got placement.State, err error) {
	defer f.begin("ReconcilePlacement", &err)()
	if err != nil {
		return placement.State{}, err
	}
	r, err := f.row(id)
	if err != nil {
		return placement.State{}, err
	}
	kind := f.wantedKind(r)
	cell, refused := f.selectCell(r)
	if refused != nil {
		if !r.placement.Assigned() {
			return placement.State{}, refused
		}
		kind, cell = r.placement.Destination().Kind(), r.placement.Destination().Cell
	}
	for range 2 {
		switch r.placement.Reconcile(kind, cell) {
		case placement.Cancel:
			f.drop(r.placement.Migration.Target.Location)
			r.placement.Migration = placement.Migration{}
			r.version++
		case placement.Begin:
			r.placement.Migration.Target.Location = f.newLocation(kind, cell)
			r.version++
		case placement.Leave:
			f.leaveIndex(r)
		case placement.None, placement.Restart, placement.Rebuild, placement.Copy:
		}
	}
	return r.placement, refused
}

// SetPartitionID implements tenant.PlacementStore.
func (f *Fake) SetPartitionID(_ context.Context, id tenant.ID, at placement.Location, partitionID int64) (err error) {
	defer f.begin("SetPartitionID", &err)()
	if err != nil {
		return err
	}
	r, err := f.row(id)
	if err != nil {
		return err
	}
	recorded := &r.placement.Current
	action := r.placement.Observe(at, partitionID)
	switch action {
	case placement.Rebuild:
		r.placement.Migration = placement.Migration{}
	case placement.Copy:
		recorded = &r.placement.Migration.Target
	case placement.None, placement.Begin, placement.Cancel, placement.Leave, placement.Restart:
		return nil
	}
	if r.hasUnits() || recorded.PartitionID != 0 || r.lost {
		f.reindexed[id]++
	}
	recorded.PartitionID, r.lost = partitionID, false
	if action == placement.Rebuild && r.hasUnits() {
		r.placement.Migration.Target = r.placement.Current
	}
	r.version++
	return nil
}

func (r *row) hasUnits() bool { return r.usage.Memories+r.usage.Conversations > 0 }

// MarkLost implements placement.Store.
func (f *Fake) MarkLost(_ context.Context, p placement.Placement) (err error) {
	defer f.begin("MarkLost", &err)()
	if err != nil {
		return err
	}
	matches := func(q placement.Placement) bool {
		same := q.Location == p.Location || p.Shared && q.Shared && idKey(q.Location) == idKey(p.Location)
		return same && q.PartitionID == p.PartitionID
	}
	for _, r := range f.rows {
		switch {
		case matches(r.placement.Current):
			r.placement.Current.PartitionID = 0
			r.placement.Migration = placement.Migration{}
			if r.hasUnits() {
				r.placement.Migration.Target = r.placement.Current
			}
		case matches(r.placement.Migration.Target):
			r.placement.Migration.Target.PartitionID = 0
		default:
			continue
		}
		r.lost = true
		r.version++
	}
	return nil
}

// LatestPartitionID implements placement.Store.
func (f *Fake) LatestPartitionID(_ context.Context, at placement.Location) (partitionID int64, err error) {
	defer f.begin("LatestPartitionID", &err)()
	if err != nil {
		return 0, err
	}
	for _, r := range f.rows {
		for _, p := range []placement.Placement{r.placement.Current, r.placement.Migration.Target} {
			if !r.retired && p.Shared && idKey(p.Location) == idKey(at) {
				partitionID = max(partitionID, p.PartitionID)
			}
		}
	}
	return partitionID, nil
}

// Ensure implements placement.Partitions.
func (f *Fake) Ensure(_ context.Context, p placement.Placement) (partitionID int64, err error) {
	defer f.begin("Ensure", &err)()
	if err != nil {
		return 0, err
	}
	if f.partitionIDs[idKey(p.Location)] == 0 && p.PartitionID == 0 {
		f.lastPartitionID++
		f.partitionIDs[idKey(p.Location)] = f.lastPartitionID
	}
	partitionID = f.partitionIDs[idKey(p.Location)]
	f.partitions[p.Location] = partitionID != 0
	return partitionID, nil
}

// idKey returns the location that has an id: a partition, or a shared collection.
func idKey(at placement.Location) placement.Location {
	if at.Shared {
		at.Partition = ""
	}
	return at
}

// Drop implements placement.Partitions.
func (f *Fake) Drop(_ context.Context, at placement.Location) (err error) {
	defer f.begin("Drop", &err)()
	if err != nil {
		return err
	}
	f.drop(at)
	return nil
}

func (f *Fake) drop(at placement.Location) {
	delete(f.partitions, at)
	if !at.Shared {
		delete(f.partitionIDs, at)
	}
}

// completeMigration simulates the job that copies units.
func (f *Fake) completeMigration(r *row) {
	switch s := &r.placement; {
	case s.Rebuilding() && s.Current.PartitionID != 0:
		s.Migration = placement.Migration{}
	case s.Migrating() && s.Writable():
		f.drop(s.Current.Location)
		*s = placement.State{Current: s.Migration.Target, Outgrown: s.Outgrown}
		r.version++
	}
}
