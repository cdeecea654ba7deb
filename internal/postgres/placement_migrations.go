package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ indexing.Placements = (*DB)(nil)

func (d *DB) beginMigration(ctx context.Context, q *db.Queries, id tenant.ID, kind placement.Kind, cell string) error {
	number, err := q.NextPartitionNumber(ctx)
	if err != nil {
		return err
	}
	generation, err := q.PlacementGeneration(ctx, string(id))
	if err != nil {
		return err
	}
	target, err := assignLocation(ctx, q, generation, kind, cell, placement.PartitionName(string(id), number))
	if err != nil {
		return err
	}
	_, err = d.startMigration(ctx, q, id, target, 0)
	return err
}

func (d *DB) cancelMigration(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, s placement.State) error {
	if err := q.DeleteMigration(ctx, string(id)); err != nil {
		return err
	}
	return d.insertDrop(ctx, tx, s.Migration.Target.Location)
}

// leaveIndex makes the tenant's placements unindexed, also that in the next generation, and commits
// the jobs that drop their locations. It keeps the names, which are never assigned twice, and
// the progress of a migration to the next generation, because PostgreSQL has the vectors.
func (d *DB) leaveIndex(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, s placement.State) error {
	if err := q.LeaveIndex(ctx, string(id)); err != nil {
		return err
	}
	if err := q.LeaveIndexOfTarget(ctx, string(id)); err != nil {
		return err
	}
	if err := q.DeleteMigration(ctx, string(id)); err != nil {
		return err
	}
	for _, at := range s.Locations() {
		if err := d.insertDrop(ctx, tx, at); err != nil {
			return err
		}
	}
	return q.NotifyTenant(ctx, string(id)) // replicas stop searching the location
}

func (d *DB) restartMigration(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID) error {
	run, err := q.RestartMigration(ctx, string(id))
	if err != nil {
		return err
	}
	return d.insertJob(ctx, tx, queue.Placements, indexing.MigrateArgs{Tenant: id, Run: run})
}

func (d *DB) startMigration(ctx context.Context, q *db.Queries, id tenant.ID, target placement.Location, partitionID int64) (run int64, err error) {
	return q.StartMigration(ctx, db.StartMigrationParams{TenantID: string(id),
		Cell: target.Cell, Collection: target.Collection, Partition: target.Partition, Shared: target.Shared, PartitionID: partitionID})
}

// unindexBatch is the number of units per transaction that no longer count as indexed after
// the loss of a partition.
const unindexBatch = 500

// SetPartitionID implements tenant.PlacementStore. It records a lost partition in batches of units.
func (d *DB) SetPartitionID(ctx context.Context, id tenant.ID, at placement.Location, partitionID int64) error {
	for after := int64(0); ; {
		last, err := d.setPartitionID(ctx, id, at, partitionID, after)
		if err != nil {
			return fmt.Errorf("set partition id: %w", err)
		}
		if last == 0 {
			return nil
		}
		after = last
	}
}

// setPartitionID returns 0 if it has recorded the id. Otherwise, it returns the unit after which the
// next batch begins.
func (d *DB) setPartitionID(ctx context.Context, id tenant.ID, at placement.Location, partitionID, after int64) (last int64, err error) {
	err = d.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
		last = 0
		first, err := q.SetFirstPartitionID(ctx, db.SetFirstPartitionIDParams{
			TenantID: string(id), Cell: at.Cell, Collection: at.Collection, Partition: at.Partition, PartitionID: partitionID,
		})
		if err != nil || first > 0 {
			return err
		}
		if _, err := q.ActiveTenant(ctx, string(id)); err != nil {
			return orUnknown(err, id)
		}
		if err := q.LockPlacement(ctx, string(id)); err != nil {
			return err
		}
		if next, err := setTargetPartition(ctx, q, id, at, partitionID); err != nil || next {
			return err
		}
		state, err := readPlacement(ctx, q, id)
		if err != nil {
			return err
		}
		switch state.Observe(at, partitionID) {
		case placement.Rebuild:
			last, err = d.rebuild(ctx, tx, q, id, state, partitionID, after)
			return err
		case placement.Copy:
			return d.copyUnits(ctx, tx, q, id, at, partitionID)
		case placement.None, placement.Begin, placement.Cancel, placement.Leave, placement.Restart:
		}
		return nil
	})
	return last, err
}

// rebuild fills the current partition, after the last batch of units no longer counts as indexed. It
// cancels a migration, which begins again after the rebuild. It returns the end of the batch unless that
// is the last one.
func (d *DB) rebuild(
	ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, s placement.State, partitionID, after int64,
) (last int64, err error) {
	batch, err := q.UnindexUnits(ctx, db.UnindexUnitsParams{TenantID: string(id), After: after, Batch: unindexBatch})
	if err != nil {
		return 0, err
	}
	if s.Migrating() {
		if err := d.cancelMigration(ctx, tx, q, id, s); err != nil {
			return 0, err
		}
	}
	if batch.Units == unindexBatch {
		return batch.Last, d.beginLoss(ctx, q, id, s)
	}
	if err := q.SetPartitionID(ctx, db.SetPartitionIDParams{TenantID: string(id), PartitionID: partitionID}); err != nil {
		return 0, err
	}
	hasUnits, err := q.HasUnits(ctx, string(id))
	if err != nil {
		return 0, err
	}
	if !hasUnits {
		return 0, q.DeleteMigration(ctx, string(id)) // of an earlier rebuild
	}
	return 0, d.copyUnits(ctx, tx, q, id, s.Current.Location, partitionID)
}

// beginLoss makes State.LossUnfinished true: until finishLoss, the partition keeps its id, so it is not created
// again, and no migration begins.
func (d *DB) beginLoss(ctx context.Context, q *db.Queries, id tenant.ID, s placement.State) error {
	if s.Rebuilding() && !s.Writable() {
		return nil
	}
	_, err := d.startMigration(ctx, q, id, s.Current.Location, 0)
	return err
}

// finishLoss records the rest of a loss, if its record was interrupted. Otherwise, units would stay unindexed in a
// partition that exists again with its content.
func (d *DB) finishLoss(ctx context.Context, id tenant.ID) error {
	state, err := readPlacement(ctx, db.New(d.pool), id)
	if err != nil {
		return fmt.Errorf("get placement: %w", mapError(err))
	}
	if !state.LossUnfinished() {
		return nil
	}
	return d.SetPartitionID(ctx, id, state.Current.Location, 0)
}

// copyUnits commits the job that copies the tenant's units into a partition.
func (d *DB) copyUnits(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, target placement.Location, partitionID int64) error {
	run, err := d.startMigration(ctx, q, id, target, partitionID)
	if err != nil {
		return err
	}
	return d.insertJob(ctx, tx, queue.Placements, indexing.MigrateArgs{Tenant: id, Run: run})
}

// AdvanceMigration implements indexing.Placements.
func (d *DB) AdvanceMigration(ctx context.Context, id tenant.ID, run int64, cursor retrieve.UnitID) (bool, error) {
	n, err := db.New(d.pool).AdvanceMigration(ctx, db.AdvanceMigrationParams{TenantID: string(id), Run: run, Cursor: int64(cursor)})
	if err != nil {
		return false, fmt.Errorf("advance migration: %w", mapError(err))
	}
	return n > 0, nil
}

// CompleteMigration implements indexing.Placements.
func (d *DB) CompleteMigration(ctx context.Context, id tenant.ID, run int64) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		if err := q.LockPlacement(ctx, string(id)); err != nil {
			return err
		}
		state, err := readPlacement(ctx, q, id)
		if err != nil || state.Migration.Run != run {
			return err
		}
		if state.Migrating() {
			if err := q.MovePlacementToTarget(ctx, string(id)); err != nil {
				return err
			}
			if err := d.insertDrop(ctx, tx, state.Current.Location); err != nil {
				return err
			}
			// Replicas search the new location from here on.
			if err := q.NotifyTenant(ctx, string(id)); err != nil {
				return err
			}
		}
		return q.DeleteMigration(ctx, string(id))
	})
	if err != nil {
		return fmt.Errorf("complete migration: %w", err)
	}
	return nil
}

// insertDrop commits the jobs that drop a location that the tenant has left. In no index, there
// is nothing to drop.
func (d *DB) insertDrop(ctx context.Context, tx pgx.Tx, at placement.Location) error {
	if !at.Indexed() {
		return nil
	}
	var params []river.InsertManyParams
	for _, delay := range []time.Duration{placement.DropDelay, placement.FinalDropDelay} {
		params = append(params, river.InsertManyParams{
			Args:       indexing.DropArgsOf(at),
			InsertOpts: &river.InsertOpts{Queue: queue.Purges, MaxAttempts: maxAttempts, ScheduledAt: time.Now().Add(delay)},
		})
	}
	if _, err := d.jobs.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("commit drop job: %w", err)
	}
	return nil
}
