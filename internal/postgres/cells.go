package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ placement.CellStore = (*DB)(nil)

// ApplyCell implements placement.CellStore.
func (d *DB) ApplyCell(ctx context.Context, c placement.Cell) error {
	err := db.New(d.pool).ApplyCell(ctx, db.ApplyCellParams{
		Name: c.Name, Region: c.Region, MaxTenants: c.Capacity.Tenants, MaxUnits: c.Capacity.Units, Cordoned: c.Cordoned,
	})
	if err != nil {
		return fmt.Errorf("apply cell: %w", mapError(err))
	}
	return nil
}

// UpdateCell implements placement.CellStore.
func (d *DB) UpdateCell(ctx context.Context, c placement.Cell) error {
	err := db.New(d.pool).UpdateCell(ctx, db.UpdateCellParams{
		Name: c.Name, Region: c.Region, MaxTenants: c.Capacity.Tenants, MaxUnits: c.Capacity.Units, Cordoned: c.Cordoned,
	})
	if err != nil {
		return fmt.Errorf("update cell: %w", mapError(err))
	}
	return nil
}

// CellUsage implements placement.CellStore. It counts the units of some of the tenants again.
func (d *DB) CellUsage(ctx context.Context, name string) (usage placement.CellUsage, leaving int64, err error) {
	q := db.New(d.pool)
	ids, err := q.ListUncountedTenants(ctx, name)
	if err != nil {
		return usage, 0, fmt.Errorf("list tenants of cell: %w", mapError(err))
	}
	for _, id := range ids {
		err := d.inTenant(ctx, tenant.ID(id), func(_ pgx.Tx, q *db.Queries) error { return q.CountTenantUnits(ctx, id) })
		if err != nil {
			return usage, 0, fmt.Errorf("count units of tenant: %w", err)
		}
	}
	err = d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		usage, leaving, err = cellUsage(ctx, tx, q, name)
		return err
	})
	if err != nil {
		return usage, 0, fmt.Errorf("get usage of cell: %w", err)
	}
	return usage, leaving, nil
}

func cellUsage(ctx context.Context, tx pgx.Tx, q *db.Queries, name string) (usage placement.CellUsage, leaving int64, err error) {
	counts, err := q.CountCells(ctx)
	if err != nil {
		return usage, 0, err
	}
	for _, c := range counts {
		if c.Cell == name {
			usage = placement.CellUsage{Tenants: c.Tenants, Units: c.Units}
		}
	}
	err = tx.QueryRow(ctx, `select count(distinct args->>'partition') from river_job where kind = 'placement.drop' and args->>'cell' = $1
		and state not in ('completed', 'cancelled', 'discarded')`, name).Scan(&leaving)
	return usage, leaving, err
}

// DeleteCell implements placement.CellStore.
func (d *DB) DeleteCell(ctx context.Context, name string) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		if err := q.LockCollections(ctx); err != nil { // no tenant is assigned meanwhile
			return err
		}
		usage, leaving, err := cellUsage(ctx, tx, q, name)
		if err != nil {
			return err
		}
		if usage.Tenants+leaving > 0 {
			return fault.New(fault.Conflict, "cell %s contains the vectors of %d tenants", name, usage.Tenants+leaving)
		}
		return q.DeleteCell(ctx, name)
	})
	if err != nil {
		return fmt.Errorf("delete cell: %w", err)
	}
	return nil
}

// selectCell returns the cell for a location of a kind. If the tenant has to move, the
// transaction holds the capacity until it ends.
func selectCell(ctx context.Context, q *db.Queries, kind placement.Kind, p placement.Preference, s placement.State) (string, error) {
	if kind == placement.Unindexed || p == (placement.Preference{}) {
		return "", nil
	}
	rows, err := q.ListCells(ctx)
	if err != nil {
		return "", err
	}
	if name, ok := p.Stay(collect(rows, toCell), s); ok {
		return name, nil
	}
	if err := q.LockCollections(ctx); err != nil {
		return "", err
	}
	if rows, err = q.ListCells(ctx); err != nil { // one may have been deleted meanwhile
		return "", err
	}
	cells := collect(rows, toCell)
	counts, err := q.CountCells(ctx)
	if err != nil {
		return "", err
	}
	for i := range cells {
		for _, c := range counts {
			if c.Cell == cells[i].Name {
				cells[i].Usage = placement.CellUsage{Tenants: c.Tenants, Units: c.Units}
			}
		}
	}
	return p.Select(cells)
}

// isRefused reports whether no cell accepts a tenant as it requests.
func isRefused(err error) bool {
	return errors.Is(err, placement.ErrCellNotFound) || errors.Is(err, placement.ErrCellFull)
}

func toCell(c db.Cell) placement.Cell {
	return placement.Cell{
		Name: c.Name, Region: c.Region, Cordoned: c.Cordoned, Capacity: placement.CellUsage{Tenants: c.MaxTenants, Units: c.MaxUnits},
	}
}
