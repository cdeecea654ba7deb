package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// cleanupBatch is the number of units whose other vectors are deleted per transaction.
const cleanupBatch = 500

// EnsureEmbeddingTarget implements reembed.Store.
func (d *DB) EnsureEmbeddingTarget(ctx context.Context, m reembed.Migration, id tenant.ID) (next placement.Next, err error) {
	err = d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		current, err := q.LockEmbeddingPhase(ctx, m.ID)
		if err != nil {
			return err
		}
		if len(current) == 0 {
			return reembed.ErrRolledBack
		}
		p, err := q.TenantPlacementKind(ctx, string(id))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // it is being purged
		}
		if err != nil {
			return err
		}
		has, err := q.HasEmbeddingTarget(ctx, string(id))
		if err != nil {
			return err
		}
		if !has {
			kind := placement.Location{Collection: p.Collection, Shared: p.Shared}.Kind()
			if err := insertEmbeddingTarget(ctx, q, m, id, kind, p.Cell); err != nil {
				return err
			}
		}
		state, err := readPlacement(ctx, q, id)
		next = state.Next
		return err
	})
	if err != nil {
		return placement.Next{}, fmt.Errorf("ensure placement in the next generation: %w", err)
	}
	return next, nil
}

func insertEmbeddingTarget(ctx context.Context, q *db.Queries, m reembed.Migration, id tenant.ID, kind placement.Kind, cell string) error {
	generation, err := q.GenerationName(ctx, int16(m.Target))
	if err != nil {
		return err
	}
	number, err := q.NextPartitionNumber(ctx)
	if err != nil {
		return err
	}
	at, err := assignLocation(ctx, q, generation, kind, cell, placement.PartitionName(string(id), number))
	if err != nil {
		return err
	}
	err = q.InsertEmbeddingTarget(ctx, db.InsertEmbeddingTargetParams{
		TenantID: string(id), Generation: generation, Cell: at.Cell, Collection: at.Collection, Partition: at.Partition, Shared: at.Shared,
	})
	if err != nil {
		return err
	}
	return q.NotifyOperator(ctx, string(id))
}

// setTargetPartition records the partition id of the placement in the next generation. It
// returns false if the location is not that placement.
func setTargetPartition(ctx context.Context, q *db.Queries, id tenant.ID, at placement.Location, partitionID int64) (bool, error) {
	is, err := q.IsEmbeddingTarget(ctx, db.IsEmbeddingTargetParams{TenantID: string(id), Cell: at.Cell, Collection: at.Collection, Partition: at.Partition})
	if err != nil || !is {
		return false, err
	}
	n, err := q.SetEmbeddingTargetPartition(ctx, db.SetEmbeddingTargetPartitionParams{
		TenantID: string(id), Cell: at.Cell, Collection: at.Collection, Partition: at.Partition, PartitionID: partitionID,
	})
	if err == nil && n > 0 {
		err = q.NotifyTenant(ctx, string(id))
	}
	return true, err
}

// AdvanceEmbeddingTarget implements reembed.Store.
func (d *DB) AdvanceEmbeddingTarget(ctx context.Context, id tenant.ID, p placement.Placement, cursor retrieve.UnitID, ready bool) (valid bool, err error) {
	err = d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.AdvanceEmbeddingTarget(ctx, db.AdvanceEmbeddingTargetParams{
			TenantID: string(id), Cell: p.Cell, Collection: p.Collection, Partition: p.Partition, PartitionID: p.PartitionID, Cursor: int64(cursor), Ready: ready,
		})
		if valid = n > 0; err != nil || !valid {
			return err
		}
		if ready { // users of the canary are served with it from here on
			if err := q.NotifyTenant(ctx, string(id)); err != nil {
				return err
			}
		}
		return q.BeatEmbeddingMigration(ctx)
	})
	if err != nil {
		return false, fmt.Errorf("record progress of the embedding migration: %w", err)
	}
	return valid, nil
}

// CutOver implements reembed.Store. A copy into a partition of the old generation ends.
func (d *DB) CutOver(ctx context.Context, id tenant.ID) error {
	err := d.leaveTarget(ctx, id, func(tx pgx.Tx, q *db.Queries, state placement.State) error {
		if err := checkTargetReady(ctx, q, id, state); err != nil {
			return err
		}
		if err := q.MovePlacementToGeneration(ctx, string(id)); err != nil {
			return err
		}
		if err := q.DeleteMigration(ctx, string(id)); err != nil {
			return err
		}
		for _, at := range state.Locations() {
			if at == state.Next.Placement.Location {
				continue
			}
			if err := d.insertDrop(ctx, tx, at); err != nil {
				return err
			}
		}
		if next := state.Next.Placement; state.Rebuilding() && next.Indexed() {
			// The rebuild was to confirm the units. No sweep does so, because the target contains them.
			return d.copyUnits(ctx, tx, q, id, next.Location, next.PartitionID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cut over to the next generation: %w", err)
	}
	return nil
}

// checkTargetReady returns ErrIncomplete if the target was lost after it was complete. A tenant that is being purged does not
// complete it.
func checkTargetReady(ctx context.Context, q *db.Queries, id tenant.ID, state placement.State) error {
	if state.Next.Ready {
		return nil
	}
	_, err := q.TenantPlacementKind(ctx, string(id))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return reembed.ErrIncomplete
}

// DiscardTarget implements reembed.Store.
func (d *DB) DiscardTarget(ctx context.Context, id tenant.ID) error {
	err := d.leaveTarget(ctx, id, func(tx pgx.Tx, _ *db.Queries, state placement.State) error {
		return d.insertDrop(ctx, tx, state.Next.Placement.Location)
	})
	if err != nil {
		return fmt.Errorf("discard placement in the next generation: %w", err)
	}
	return nil
}

// leaveTarget calls leave unless the tenant's target is already being cleaned up.
func (d *DB) leaveTarget(ctx context.Context, id tenant.ID, leave func(pgx.Tx, *db.Queries, placement.State) error) error {
	return d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		if err := q.LockPlacement(ctx, string(id)); err != nil {
			return err
		}
		state, err := readPlacement(ctx, q, id)
		if err != nil || state.Next.Placement.Location == (placement.Location{}) {
			return err
		}
		if err := leave(tx, q, state); err != nil {
			return err
		}
		if err := q.CleanEmbeddingTarget(ctx, string(id)); err != nil {
			return err
		}
		if err := q.NotifyOperator(ctx, string(id)); err != nil {
			return err
		}
		return q.NotifyTenant(ctx, string(id))
	})
}

// DeleteOtherVectors implements reembed.Store. It deletes in batches.
func (d *DB) DeleteOtherVectors(ctx context.Context, id tenant.ID) error {
	for after := int64(0); ; {
		var last int64
		err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
			state, err := readPlacement(ctx, q, id)
			if err != nil || !state.Assigned() {
				return err
			}
			last, err = q.KeepGeneration(ctx, db.KeepGenerationParams{
				TenantID: string(id), GenerationID: int16(state.Generation), After: after, Batch: cleanupBatch,
			})
			if err == nil && last == 0 {
				err = q.DeleteEmbeddingTarget(ctx, string(id))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("delete vectors of other generations: %w", err)
		}
		if last == 0 {
			return nil
		}
		after = last
	}
}

// minPool is the minimum number of units of a pool: in a small one every model ranks
// every unit first.
const minPool = 20

// SamplePools implements reembed.Store.
func (d *DB) SamplePools(ctx context.Context, id tenant.ID, users, units int) (pools []reembed.Pool, err error) {
	err = d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
		pools = nil
		sampled, err := q.ProbeUsers(ctx, db.ProbeUsersParams{TenantID: string(id), AtLeast: minPool, Most: int64(users)})
		if err != nil {
			return err
		}
		for _, u := range sampled {
			rows, err := q.ProbeUnits(ctx, db.ProbeUnitsParams{TenantID: string(id), UserID: u.UserID, Kind: u.Kind, Most: int64(units)})
			if err != nil {
				return err
			}
			pools = append(pools, collect(rows, toProbed))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sample units: %w", err)
	}
	return pools, nil
}

func toProbed(r db.ProbeUnitsRow) reembed.Probed {
	return reembed.Probed{
		Owner: r.Owner, Seq: int(r.Seq), Text: r.Piece, Before: r.Before,
		Vectors: vectorsOf(db.LoadUnitsRow{
			Embedding: r.Embedding, GenerationID: r.GenerationID, NextEmbedding: r.NextEmbedding, NextGenerationID: r.NextGenerationID,
		}),
	}
}
