package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errChanged means that a concurrent transaction changed what this one had read. writeScope repeats the transaction.
var errChanged = tenant.ErrConcurrentUpdates

// writeScope is inScope with fewer round trips, for transactions that other writers wait for. The
// transaction begins with the first query. Statements without results (:exec of sqlc) are sent with the next query
// or the commit, which then returns their error.
func (d *DB) writeScope(ctx context.Context, scope tenant.Scope, do work) error {
	return d.write(ctx, scope.Tenant, strconv.FormatInt(int64(scope.User), 10), do)
}

// writeTenant is inTenant with fewer round trips, like writeScope.
func (d *DB) writeTenant(ctx context.Context, id tenant.ID, do work) error {
	return d.write(ctx, id, allUsers, do)
}

func (d *DB) write(ctx context.Context, t tenant.ID, user string, do work) error {
	id, ok := parseID(string(t))
	if !ok {
		return unknownTenant(t)
	}
	var err error
	for range attempts {
		err = d.writeOnce(ctx, id, user, do)
		if !lost(err) && !errors.Is(err, errChanged) {
			break
		}
	}
	return mapError(err)
}

func (d *DB) writeOnce(ctx context.Context, tenant, user string, do work) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	w := &writer{conn: conn.Conn(), batch: &pgx.Batch{}}
	w.batch.Queue("begin")
	w.batch.Queue(enterWritableScope, tenant, user)
	defer w.rollback(context.WithoutCancel(ctx))
	if err := do(w, db.New(w)); err != nil {
		return err
	}
	return w.commit(ctx)
}

// writer implements those methods of pgx.Tx that db.Queries and the job queue call. The rows of a query
// must be closed before the next.
type writer struct {
	pgx.Tx // nil
	conn   *pgx.Conn
	batch  *pgx.Batch // not sent yet
}

// Conn implements pgx.Tx.
func (w *writer) Conn() *pgx.Conn { return w.conn }

// Query implements pgx.Tx.
func (w *writer) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	batch := w.batch
	w.batch = &pgx.Batch{}
	batch.Queue(sql, args...)
	return send(ctx, w.conn, batch)
}

// QueryRow implements pgx.Tx.
func (w *writer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := w.Query(ctx, sql, args...)
	return batchRow{rows, err}
}

// Exec implements pgx.Tx.
func (w *writer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if hasNoResult(sql) {
		w.batch.Queue(sql, args...)
		return pgconn.CommandTag{}, nil
	}
	rows, err := w.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// CopyFrom implements pgx.Tx. It sends an insertion of each row with the next query, which needs no round trip of its own. pgx must know the types of the
// columns, so it does not work with the execution modes exec and simple_protocol.
func (w *writer) CopyFrom(_ context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (n int64, err error) {
	names, places := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], places[i] = pgx.Identifier{c}.Sanitize(), "$"+strconv.Itoa(i+1)
	}
	sql := "insert into " + table.Sanitize() + " (" + strings.Join(names, ", ") + ") values (" + strings.Join(places, ", ") + ")"
	for ; rows.Next(); n++ {
		values, err := rows.Values()
		if err != nil {
			return n, err
		}
		w.batch.Queue(sql, values...)
	}
	return n, rows.Err()
}

// hasNoResult reports whether sqlc generated a method that returns an error only.
func hasNoResult(sql string) bool {
	name, _, _ := strings.Cut(sql, "\n")
	return strings.HasPrefix(name, "-- name: ") && strings.HasSuffix(name, " :exec")
}

func (w *writer) commit(ctx context.Context) error {
	_, err := w.Exec(ctx, "commit")
	return err
}

// rollback has no effect after a commit. If it fails, the pool closes the connection.
func (w *writer) rollback(ctx context.Context) {
	if w.conn.PgConn().TxStatus() != 'I' {
		_, _ = w.conn.Exec(ctx, "rollback")
	}
}
