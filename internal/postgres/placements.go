package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.PlacementStore = (*DB)(nil)

// EnsurePlacement implements tenant.PlacementStore.
func (d *DB) EnsurePlacement(ctx context.Context, id tenant.ID) (placement.Location, error) {
	var out placement.Location
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		r, err := q.GetTenantLocation(ctx, string(id))
		if err != nil {
			return orUnknown(err, id)
		}
		out = placement.Location{Cell: r.Cell, Collection: r.Collection, Partition: r.Partition, Shared: r.Shared}
		if out != (placement.Location{}) {
			return nil
		}
		generation, err := d.activeGeneration(ctx, q)
		if err != nil {
			return err
		}
		kind := placement.State{Outgrown: r.Outgrown}.Wanted(d.requestedKind(r.Isolation))
		cell, err := selectCell(ctx, q, kind, placement.Preference{Cell: r.RequestedCell, Region: r.RequestedRegion}, placement.State{})
		if err != nil {
			return err
		}
		out, err = assignLocation(ctx, q, generation, kind, cell, placement.PartitionName(string(id), 0))
		if err != nil {
			return err
		}
		return q.InsertPlacement(ctx, db.InsertPlacementParams{TenantID: string(id), Generation: generation,
			Cell: out.Cell, Collection: out.Collection, Partition: out.Partition, Shared: out.Shared})
	})
	if err != nil {
		return placement.Location{}, fmt.Errorf("ensure placement: %w", err)
	}
	return out, nil
}

// requestedKind returns the kind of location for tenants with an isolation that have outgrown exact
// scoring.
func (d *DB) requestedKind(isolation string) placement.Kind {
	if d.config.Unindexed {
		return placement.Unindexed
	}
	return tenant.Isolation(isolation).Kind()
}

// assignLocation returns a location in a collection of the cell and generation with capacity, or in no
// index. The transaction holds the capacity until it ends.
func assignLocation(ctx context.Context, q *db.Queries, generation string, kind placement.Kind, cell, partition string) (placement.Location, error) {
	if kind == placement.Unindexed {
		return placement.Location{Partition: partition}, nil
	}
	shared := kind == placement.Shared
	if err := q.LockCollections(ctx); err != nil {
		return placement.Location{}, err
	}
	counts, err := q.CountCollectionTenants(ctx, db.CountCollectionTenantsParams{Cell: cell, Generation: generation, Shared: shared})
	if err != nil {
		return placement.Location{}, err
	}
	load := make(map[string]int64, len(counts))
	for _, c := range counts {
		load[c.Collection] = c.Tenants
	}
	return placement.Location{
		Cell: cell, Collection: placement.SelectCollection(generation, shared, load), Partition: partition, Shared: shared,
	}, nil
}

// readPlacement returns the zero State for a tenant without a placement.
func readPlacement(ctx context.Context, q *db.Queries, id tenant.ID) (placement.State, error) {
	rows, err := q.GetPlacement(ctx, db.GetPlacementParams{TenantID: string(id), StallSeconds: placement.StallTimeout.Seconds()})
	if err != nil || len(rows) == 0 {
		return placement.State{}, err
	}
	r := rows[0]
	state := placement.State{
		Current: placement.Placement{
			Location:    placement.Location{Cell: r.Cell, Collection: r.Collection, Partition: r.Partition, Shared: r.Shared},
			PartitionID: r.PartitionID, Dimensions: int(r.Dimensions),
		},
		Generation: placement.GenerationID(r.GenerationID), Model: r.Model, Outgrown: r.Outgrown,
		Migration: placement.Migration{
			Target: placement.Placement{
				Location:    placement.Location{Cell: r.TargetCell, Collection: r.TargetCollection, Partition: r.TargetPartition, Shared: r.TargetShared},
				PartitionID: r.TargetPartitionID, Dimensions: int(r.Dimensions),
			},
			Run: r.Run, Cursor: r.Cursor, Stalled: r.Stalled,
		},
	}
	if r.NextPartition != "" {
		state.Next = placement.Next{
			Placement: placement.Placement{
				Location:    placement.Location{Cell: r.NextCell, Collection: r.NextCollection, Partition: r.NextPartition, Shared: r.NextShared},
				PartitionID: r.NextPartitionID, Dimensions: int(r.NextDimensions),
			},
			Generation: placement.GenerationID(r.NextGenerationID), Model: r.NextModel, Cursor: r.NextCursor, Ready: r.NextState == "ready",
		}
	}
	if r.TargetPartition == "" {
		state.Migration = placement.Migration{}
	}
	return state, nil
}

// GetPlacement implements indexing.Placements.
func (d *DB) GetPlacement(ctx context.Context, id tenant.ID) (placement.State, error) {
	state, err := readPlacement(ctx, db.New(d.pool), id)
	if err != nil {
		return placement.State{}, fmt.Errorf("get placement: %w", mapError(err))
	}
	if !state.Assigned() {
		return placement.State{}, fault.New(fault.NotFound, "tenant %s has no placement", id)
	}
	return state, nil
}

// MarkLost implements placement.Store. No job fills the partition until it has
// an id again.
func (d *DB) MarkLost(ctx context.Context, p placement.Placement) error {
	tenants, err := db.New(d.pool).ListTenantsInPartition(ctx, db.ListTenantsInPartitionParams{
		Cell: p.Cell, Collection: p.Collection, Shared: p.Shared, Partition: p.Partition, PartitionID: p.PartitionID,
	})
	if err != nil {
		return fmt.Errorf("list tenants in partition: %w", mapError(err))
	}
	for _, t := range tenants {
		at := placement.Location{Cell: p.Cell, Collection: p.Collection, Partition: t.Partition, Shared: p.Shared}
		if err := d.SetPartitionID(ctx, tenant.ID(t.TenantID), at, 0); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// LatestPartitionID implements placement.Store.
func (d *DB) LatestPartitionID(ctx context.Context, at placement.Location) (int64, error) {
	id, err := db.New(d.pool).LatestPartitionID(ctx, db.LatestPartitionIDParams{Cell: at.Cell, Collection: at.Collection})
	if err != nil {
		return 0, fmt.Errorf("get latest partition id: %w", mapError(err))
	}
	return id, nil
}

// ReconcilePlacement implements tenant.PlacementStore.
func (d *DB) ReconcilePlacement(ctx context.Context, id tenant.ID) (placement.State, error) {
	if err := d.finishLoss(ctx, id); err != nil {
		return placement.State{}, fmt.Errorf("reconcile placement: %w", err)
	}
	var out placement.State
	var refused error // the tenant stays
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		r, err := q.GetPlacementRequest(ctx, string(id))
		if err != nil {
			return orUnknown(err, id)
		}
		if err := q.LockPlacement(ctx, string(id)); err != nil {
			return err
		}
		if out, err = readPlacement(ctx, q, id); err != nil {
			return err
		}
		kind := out.Wanted(d.requestedKind(r.Isolation))
		cell, err := selectCell(ctx, q, kind, placement.Preference{Cell: r.Cell, Region: r.Region}, out)
		if refused = nil; isRefused(err) && out.Assigned() {
			refused, kind, cell = err, out.Destination().Kind(), out.Destination().Cell
		} else if err != nil {
			return err
		}
		for range 2 { // a canceled migration is followed by another one
			changed, err := d.reconcilePlacement(ctx, tx, q, id, out, kind, cell)
			if err != nil || !changed {
				return err
			}
			if out, err = readPlacement(ctx, q, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return placement.State{}, fmt.Errorf("reconcile placement: %w", err)
	}
	if refused != nil {
		return out, fmt.Errorf("reconcile placement: %w", refused)
	}
	return out, nil
}

// reconcilePlacement performs the action that brings the tenant to a location of a kind in a cell.
func (d *DB) reconcilePlacement(
	ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, s placement.State, kind placement.Kind, cell string,
) (changed bool, err error) {
	switch s.Reconcile(kind, cell) {
	case placement.Cancel:
		return true, d.cancelMigration(ctx, tx, q, id, s)
	case placement.Leave:
		return true, d.leaveIndex(ctx, tx, q, id, s)
	case placement.Begin:
		return true, d.beginMigration(ctx, q, id, kind, cell)
	case placement.Restart:
		return true, d.restartMigration(ctx, tx, q, id)
	case placement.None, placement.Rebuild, placement.Copy:
	}
	return false, nil
}
