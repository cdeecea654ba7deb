package tenant

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// PlacementStore stores the placement of each tenant. internal/postgres
// implements it with the rules of internal/placement.
type PlacementStore interface {
	placement.Store
	// EnsurePlacement assigns a location to the tenant and returns it: in no index, or,
	// if the tenant has outgrown exact scoring and the store is configured with an index,
	// one of the tenant's isolation in a cell that it requests. Later calls return the same
	// one until the tenant has migrated. placement.ErrCellNotFound or ErrCellFull if no cell
	// accepts the tenant.
	EnsurePlacement(ctx context.Context, id ID) (placement.Location, error)
	// ReconcilePlacement applies placement.State.Reconcile with the kind of location, by
	// placement.State.Wanted, and the cell, and returns the resulting state. Writes nothing
	// if there is nothing to do. If no cell accepts the tenant, it stays, and both the state
	// and placement.ErrCellNotFound or ErrCellFull are returned.
	ReconcilePlacement(ctx context.Context, id ID) (placement.State, error)
	// SetPartitionID applies placement.State.Observe: it records the id of the
	// partition at a location and commits the job that copies units into it. If the
	// current partition was lost, every unit counts as unindexed until then.
	// Writes nothing if the id is already recorded.
	SetPartitionID(ctx context.Context, id ID, at placement.Location, partitionID int64) error
}
