package placement

import (
	"fmt"
	"strings"
)

// Capacity of a collection, in tenants.
const (
	// MaxPartitions limits collections with a partition per tenant: beyond it
	// loading and flushing the collection takes minutes.
	MaxPartitions = 256
	// MaxShared limits collections with a partition key.
	MaxShared = 10_000
)

// ExactUnits is the number of a user's units of a kind up to which each search scores all of them. A
// tenant is added to the index when a user has more.
const ExactUnits = 2000

// Prefix returns the prefix of the generation's collection names: letters, digits
// and underscores. Generations that differ only in revision or settings have the
// same one.
func (g Generation) Prefix() string {
	clean := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}
	return fmt.Sprintf("mnemo_%s_%d", strings.Map(clean, g.Model), g.Dimensions)
}

// PartitionName names a partition of a tenant. The first one has the number 0
// and is named after the tenant's id only.
func PartitionName(tenantID string, number int64) string {
	name := "t" + strings.ReplaceAll(tenantID, "-", "")
	if number == 0 {
		return name
	}
	return fmt.Sprintf("%s_%d", name, number)
}

// SelectCollection returns the lowest numbered collection of the generation with a
// name that has capacity for one more tenant. load is the number of tenants by collection.
func SelectCollection(generation string, shared bool, load map[string]int64) string {
	prefix, capacity := generation+"_", int64(MaxPartitions)
	if shared {
		prefix, capacity = prefix+"shared_", MaxShared
	}
	for n := 1; ; n++ {
		if name := fmt.Sprintf("%s%d", prefix, n); load[name] < capacity {
			return name
		}
	}
}

// Action is what has to be done about a placement.
type Action int

// The actions of State.Reconcile and State.Observe.
const (
	None    Action = iota
	Begin          // begin a migration to another location
	Cancel         // cancel the migration; the tenant stays where it is
	Leave          // leave the index, without copying anything
	Restart        // replace the run of the migration, which has stalled
	Rebuild        // fill the current partition again, instead of any migration
	Copy           // start copying into the target, which now exists
)

// Wanted returns the kind of location that the tenant is to be in, given the kind that its isolation
// and the installation request. A tenant enters the index once it has outgrown exact scoring, and
// leaves it only if the installation has none.
func (s State) Wanted(requested Kind) Kind {
	if !s.Outgrown && !s.Current.Indexed() {
		return Unindexed
	}
	return requested
}

// Reconcile returns the action that brings the tenant to a location of the
// wanted kind, in a cell. A rebuild finishes before a migration begins, but leaving
// the index waits for nothing.
func (s State) Reconcile(want Kind, cell string) Action {
	matches := s.Current.is(want, cell)
	switch {
	case !s.Assigned():
		return None
	case s.Migrating() && matches:
		return Cancel
	case s.Migrating() && want != Unindexed && s.Migration.Target.Cell != cell:
		return Cancel // another migration begins
	case !matches && want == Unindexed:
		return Leave
	case !s.active() && !matches:
		return Begin
	case s.Writable() && s.Migration.Stalled:
		return Restart
	}
	return None
}

// Observe returns the action after the vector store reported the id of the
// partition at a location, 0 if the partition is lost.
func (s State) Observe(at Location, partitionID int64) Action {
	switch {
	case !s.Assigned():
		return None
	case at == s.Current.Location && partitionID != s.Current.PartitionID:
		return Rebuild
	case s.Migrating() && at == s.Migration.Target.Location && partitionID != s.Migration.Target.PartitionID:
		return Copy
	}
	return None
}
