package placement

import (
	"slices"
	"time"
)

// Location names a partition. Names never depend on user input, and no name is
// assigned twice.
type Location struct {
	// Cell names the vector store; empty for the default one, and for a location in
	// no index.
	Cell       string
	Collection string // empty for a location in no index
	Partition  string
	// Shared is true for a collection with a partition key; Partition is then
	// the value of the key.
	Shared bool
}

// Kind is the kind of a location.
type Kind int

// The kinds of locations.
const (
	Unindexed Kind = iota // no index contains the vectors; searches score all of them
	Own                   // a partition of the tenant
	Shared                // a key in a collection of many tenants
)

// Kind returns the kind of the location.
func (l Location) Kind() Kind {
	switch {
	case l.Collection == "":
		return Unindexed
	case l.Shared:
		return Shared
	}
	return Own
}

// is reports whether the location is of a kind and, in an index, in a cell.
func (l Location) is(kind Kind, cell string) bool {
	return l.Kind() == kind && (kind == Unindexed || l.Cell == cell)
}

// Indexed reports whether an index contains the vectors.
func (l Location) Indexed() bool { return l.Kind() != Unindexed }

// Placement is a location and the partition that exists there.
type Placement struct {
	Location
	// PartitionID is the vector store's id of the partition, or of the
	// collection for a shared location; 0 before it exists, and for a location in no
	// index. A different id means that the partition was lost and created again.
	PartitionID int64
	// Dimensions is the length of the vectors in a collection that Ensure creates.
	Dimensions int
}

// writable reports whether units can be written to the placement.
func (p Placement) writable() bool {
	return p.PartitionID != 0 || p.Location != (Location{}) && !p.Indexed()
}

// Migration copies a tenant's units into a partition: the current one after it
// was lost, or another one.
type Migration struct {
	Target Placement // zero for no migration
	Run    int64     // identifies the job that copies; a later run replaces it
	Cursor int64     // units up to this id are copied
	// Stalled is true if the run has not reported progress for StallTimeout.
	Stalled bool
}

// State is the placement of a tenant and its migration, if any.
type State struct {
	Current   Placement // zero before the tenant has a placement
	Migration Migration
	// Generation is that of the vectors in the current placement, Model its model.
	Generation GenerationID
	Model      string
	// Next is the placement in another generation that the tenant migrates to.
	Next Next
	// Outgrown is true if a user of the tenant has, or had, more than ExactUnits units.
	Outgrown bool
}

// Next is a tenant's placement in the generation that it migrates to. The tenant's users
// are served from either.
type Next struct {
	Placement  Placement // zero for no migration to another generation
	Generation GenerationID
	Model      string
	Cursor     int64 // units up to this id are copied
	Ready      bool  // all are copied
}

// StallTimeout is how long a run may go without progress before it is replaced.
const StallTimeout = time.Minute

// The location that a tenant has left is dropped twice: after replicas have
// switched to the new one, and after every job that wrote to it has ended.
const (
	DropDelay      = 15 * time.Second
	FinalDropDelay = 15 * time.Minute
)

// Assigned reports whether the tenant has a placement.
func (s State) Assigned() bool { return s.Current != Placement{} }

// Rebuilding reports whether the current partition was lost and is being filled.
func (s State) Rebuilding() bool {
	return s.active() && s.Migration.Target.Location == s.Current.Location
}

// Migrating reports whether the tenant is moving to another location.
func (s State) Migrating() bool {
	return s.active() && s.Migration.Target.Location != s.Current.Location
}

// LossUnfinished reports whether the current partition was lost, but units still count as
// indexed in it: the loss is being recorded, or the process that recorded it has ended.
func (s State) LossUnfinished() bool {
	return s.Rebuilding() && !s.Writable() && s.Current.PartitionID != 0
}

// Destination returns the location that the tenant is in, or is moving to.
func (s State) Destination() Location {
	if s.Migrating() {
		return s.Migration.Target.Location
	}
	return s.Current.Location
}

// Writable reports whether the target of the migration exists, so that units
// can be written to it.
func (s State) Writable() bool { return s.active() && s.Migration.Target.PartitionID != 0 }

func (s State) active() bool { return s.Migration.Target.Location != Location{} }

// Target is a location that units are written to, with the generation of its vectors.
type Target struct {
	Location
	Generation GenerationID
}

// Locations returns every location in an index that can contain units of the tenant.
func (s State) Locations() (all []Location) {
	for _, p := range []Placement{s.Current, s.Migration.Target, s.Next.Placement} {
		if p.Indexed() && !slices.Contains(all, p.Location) {
			all = append(all, p.Location)
		}
	}
	return all
}

// Targets returns the targets that a changed unit is written to.
func (s State) Targets() []Target {
	targets := []Target{{s.Current.Location, s.Generation}}
	if s.Migrating() && s.Writable() {
		targets = append(targets, Target{s.Migration.Target.Location, s.Generation})
	}
	if s.Next.Placement.writable() {
		targets = append(targets, Target{s.Next.Placement.Location, s.Next.Generation})
	}
	return targets
}
