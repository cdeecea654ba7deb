package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// reads is the body of readScope.
type reads func(tx db.DBTX, q *db.Queries) error

// readScope runs statements that only read and see the rows of one user. Each is sent together with
// its scope as a transaction of its own: one round trip instead of the three of inScope, and the
// same snapshots, because a transaction of inScope also has one for each statement.
func (d *DB) readScope(ctx context.Context, scope tenant.Scope, do reads) error {
	return d.read(ctx, scope.Tenant, reader{user: strconv.FormatInt(int64(scope.User), 10), enter: enterScope}, do)
}

// reserveScope is readScope for statements that reserve ids of a sequence, which PostgreSQL does not allow in a read-only transaction.
func (d *DB) reserveScope(ctx context.Context, scope tenant.Scope, do reads) error {
	return d.read(ctx, scope.Tenant, reader{user: strconv.FormatInt(int64(scope.User), 10), enter: enterWritableScope}, do)
}

// readTenant is readScope for the rows of all users of a tenant.
func (d *DB) readTenant(ctx context.Context, id tenant.ID, do reads) error {
	return d.read(ctx, id, reader{user: allUsers, enter: enterScope}, do)
}

func (d *DB) read(ctx context.Context, t tenant.ID, r reader, do reads) error {
	var ok bool
	if r.tenant, ok = parseID(string(t)); !ok {
		return unknownTenant(t)
	}
	var err error
	for range attempts {
		err = d.readOnce(ctx, r, do)
		if !lost(err) {
			break
		}
	}
	return mapError(err)
}

func (d *DB) readOnce(ctx context.Context, r reader, do reads) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	r.conn = conn.Conn()
	return do(r, db.New(r))
}

// reader implements db.DBTX. The rows of a query must be closed before the next.
type reader struct {
	conn         *pgx.Conn
	tenant, user string
	enter        string // one of the following
}

const (
	enterWritableScope = "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)"
	// enterScope sets the scope of a transaction that must not write.
	enterScope = enterWritableScope + ", set_config('transaction_read_only', 'on', true)"
	// enterGenericScope is enterScope for statements whose plans do not depend on their parameters.
	enterGenericScope = enterScope + ", set_config('plan_cache_mode', 'force_generic_plan', true)"
)

// withGenericPlan returns a reader that executes prepared statements with their generic plans. PostgreSQL plans a statement again for each
// execution if it overestimates the cost of its generic plan, for instance because it knows neither a limit nor the partition.
func withGenericPlan(tx db.DBTX) db.DBTX {
	if r, ok := tx.(reader); ok {
		r.enter = enterGenericScope
		return r
	}
	return tx
}

// Query implements db.DBTX. PostgreSQL runs the statements of a batch in one transaction.
func (r reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	var batch pgx.Batch
	batch.Queue(r.enter, r.tenant, r.user)
	batch.Queue(sql, args...)
	return send(ctx, r.conn, &batch)
}

// send sends statements in one round trip and returns the rows of the last.
func send(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) (pgx.Rows, error) {
	results := conn.SendBatch(ctx, batch)
	for range batch.Len() - 1 {
		if _, err := results.Exec(); err != nil {
			_ = results.Close()
			return nil, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		rows.Close()
		_ = results.Close()
		return nil, err
	}
	return batchRows{rows, results}, nil
}

// QueryRow implements db.DBTX.
func (r reader) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := r.Query(ctx, sql, args...)
	return batchRow{rows, err}
}

// Exec implements db.DBTX.
func (r reader) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := r.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// batchRows are the rows of the last statement of a batch, which ends with them.
type batchRows struct {
	pgx.Rows
	batch pgx.BatchResults
}

// Close implements pgx.Rows. If the transaction cannot end, the connection is closed; the rows
// were read.
func (r batchRows) Close() {
	r.Rows.Close()
	_ = r.batch.Close()
}

// batchRow is the first row.
type batchRow struct {
	rows pgx.Rows
	err  error
}

// Scan implements pgx.Row.
func (r batchRow) Scan(into ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(into...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
