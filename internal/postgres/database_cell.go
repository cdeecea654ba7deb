package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// DatabaseCell returns the number of the database.
func (d *DB) DatabaseCell() tenant.DatabaseCell { return d.cell }

// setDatabaseCell stores the number of a new database, 0 if cell is nil, and limits its sequences to
// the range of the number. It refuses another number than the stored one.
func setDatabaseCell(ctx context.Context, pool *pgxpool.Pool, cell *tenant.DatabaseCell) error {
	want := tenant.DatabaseCell(0)
	if cell != nil {
		want = *cell
	}
	if want < 0 || want > tenant.MaxDatabaseCell {
		return fault.New(fault.Invalid, "the database cell must be between 0 and %d, but is %d", tenant.MaxDatabaseCell, int64(want))
	}
	if _, err := pool.Exec(ctx, "insert into database_cell (cell) values ($1) on conflict do nothing", int64(want)); err != nil {
		return fmt.Errorf("store database cell: %w", mapError(err))
	}
	stored, err := readDatabaseCell(ctx, pool)
	if err != nil {
		return err
	}
	if cell != nil && stored != want {
		return fault.New(fault.Conflict, "the database has the cell %d, which cannot be changed to %d: ids and tokens contain it; use an empty database",
			int64(stored), int64(want))
	}
	return limitSequences(ctx, pool, stored)
}

// limitSequences limits every sequence of ids to the range of the database. A sequence that has
// numbers of the range continues.
func limitSequences(ctx context.Context, pool *pgxpool.Pool, cell tenant.DatabaseCell) error {
	rows, err := pool.Query(ctx, `select format('alter sequence %I minvalue %s maxvalue %s start %s', sequencename, $1::bigint, $2::bigint, $1::bigint)
			|| case when coalesce(last_value, 0) < $1::bigint then ' restart' else '' end
		from pg_sequences where schemaname = 'public' and data_type = 'bigint'::regtype and sequencename not like 'river\_%'
			and (min_value, max_value) <> ($1::bigint, $2::bigint)`, cell.FirstID(), cell.LastID())
	if err != nil {
		return fmt.Errorf("list sequences: %w", mapError(err))
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list sequences: %w", mapError(err))
	}
	for _, sql := range statements {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("limit sequences: %w", mapError(err))
		}
	}
	return nil
}

// querier is a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func readDatabaseCell(ctx context.Context, q querier) (tenant.DatabaseCell, error) {
	var cell int64
	err := q.QueryRow(ctx, "select cell from database_cell").Scan(&cell)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fault.New(fault.Invalid, "the database has no cell: run `mnemo migrate` first")
	}
	if err != nil {
		return 0, fmt.Errorf("read database cell: %w", mapError(err))
	}
	return tenant.DatabaseCell(cell), nil
}
