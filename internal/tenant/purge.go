package tenant

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// PurgeStore deletes the rows of tenants in state Purging. It does nothing for
// other tenants. internal/postgres implements it.
type PurgeStore interface {
	// PurgeRows deletes the rows of the tenant, except its record, and returns
	// the locations of its vectors.
	PurgeRows(ctx context.Context, id ID) ([]placement.Location, error)
	// DeletePurged deletes the record, which frees the name.
	DeletePurged(ctx context.Context, id ID) error
}

// Dropper drops locations of the index. placement.Partitions implements it.
type Dropper interface {
	Drop(ctx context.Context, at placement.Location) error
}

// Purge deletes all data of a tenant in state Purging: its rows, then its vectors,
// and last its record, which has their locations. It is idempotent and does nothing
// for other tenants.
func Purge(ctx context.Context, store PurgeStore, index Dropper, id ID) error {
	locations, err := store.PurgeRows(ctx, id)
	if err != nil {
		return err
	}
	for _, at := range locations {
		if err := index.Drop(ctx, at); err != nil {
			return fmt.Errorf("drop partition: %w", err)
		}
	}
	return store.DeletePurged(ctx, id)
}
