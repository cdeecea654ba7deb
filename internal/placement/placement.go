package placement

import "time"

// Location names a partition. Names never depend on user input, and no name is
// assigned twice.
type Location struct {
	Collection string
	Partition  string
	// Shared is true for a collection with a partition key; Partition is then
	// the value of the key.
	Shared bool
}

// Placement is a location and the partition that exists there.
type Placement struct {
	Location
	// PartitionID is the vector store's id of the partition, or of the
	// collection for a shared location; 0 before it exists. A different id means
	// that the partition was lost and created again.
	PartitionID int64
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

// Writable reports whether the target of the migration exists, so that units
// can be written to it.
func (s State) Writable() bool { return s.active() && s.Migration.Target.PartitionID != 0 }

func (s State) active() bool { return s.Migration.Target.Location != Location{} }

// Targets returns the locations that a changed unit is written to.
func (s State) Targets() []Location {
	if s.Migrating() && s.Writable() {
		return []Location{s.Current.Location, s.Migration.Target.Location}
	}
	return []Location{s.Current.Location}
}
