package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ListDueSweeps implements jobs.Sweeps.
func (d *DB) ListDueSweeps(ctx context.Context, before time.Time, most int) ([]indexing.SweepState, error) {
	rows, err := db.New(d.pool).ListDueSweeps(ctx, db.ListDueSweepsParams{Before: before, Most: int64(most)})
	if err != nil {
		return nil, fmt.Errorf("list due sweeps: %w", mapError(err))
	}
	return collect(rows, func(r db.ListDueSweepsRow) indexing.SweepState {
		return indexing.SweepState{Tenant: tenant.ID(r.ID), Cursor: retrieve.UnitID(r.Cursor), Drifted: r.Drifted}
	}), nil
}

// BeginSweep implements jobs.Sweeps.
func (d *DB) BeginSweep(ctx context.Context, t tenant.ID) error {
	return wrapSweep("begin", db.New(d.pool).BeginSweep(ctx, string(t)))
}

// SaveSweepCursor implements jobs.Sweeps.
func (d *DB) SaveSweepCursor(ctx context.Context, s indexing.SweepState) error {
	p := db.SaveSweepCursorParams{TenantID: string(s.Tenant), Cursor: int64(s.Cursor), Drifted: s.Drifted}
	return wrapSweep("save", db.New(d.pool).SaveSweepCursor(ctx, p))
}

// SuspendSweep implements jobs.Sweeps.
func (d *DB) SuspendSweep(ctx context.Context, s indexing.SweepState) error {
	p := db.SuspendSweepParams{TenantID: string(s.Tenant), Cursor: int64(s.Cursor), Drifted: s.Drifted}
	return wrapSweep("suspend", db.New(d.pool).SuspendSweep(ctx, p))
}

// CompleteSweep implements jobs.Sweeps.
func (d *DB) CompleteSweep(ctx context.Context, s indexing.SweepState) error {
	p := db.CompleteSweepParams{TenantID: string(s.Tenant), Drifted: s.Drifted}
	return wrapSweep("complete", db.New(d.pool).CompleteSweep(ctx, p))
}

func wrapSweep(operation string, err error) error {
	if err != nil {
		return fmt.Errorf("%s sweep: %w", operation, mapError(err))
	}
	return nil
}
