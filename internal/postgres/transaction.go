package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
)

// transaction implements pgx.Tx. Statements wait in it until they are sent with the next query or the commit, which
// needs no round trip of their own. The rows of a query must be closed before the next query.
type transaction struct {
	conn    *pgx.Conn
	waiting *pgx.Batch
}

// Queue makes a statement wait. db.Queries.Later calls it.
func (t *transaction) Queue(sql string, args ...any) { t.waiting.Queue(sql, args...) }

// Query implements pgx.Tx. It returns the error of the first statement that fails, which may be one that waited.
func (t *transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	batch := t.waiting
	t.waiting = &pgx.Batch{}
	batch.Queue(sql, args...)
	return send(ctx, t.conn, batch)
}

// QueryRow implements pgx.Tx.
func (t *transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := t.Query(ctx, sql, args...)
	return batchRow{rows, err}
}

// Exec implements pgx.Tx.
func (t *transaction) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := t.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// Commit implements pgx.Tx. PostgreSQL rolls back a transaction in which a statement failed.
func (t *transaction) Commit(ctx context.Context) error {
	tag, err := t.Exec(ctx, "commit")
	if err == nil && tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// Rollback implements pgx.Tx.
func (t *transaction) Rollback(ctx context.Context) error {
	if t.conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	_, err := t.conn.Exec(ctx, "rollback")
	return err
}

// Conn implements pgx.Tx.
func (t *transaction) Conn() *pgx.Conn { return t.conn }

// errUnsupported is the error of the methods of pgx.Tx that neither this package nor the job queue calls.
var errUnsupported = errors.New("the transaction supports only Exec, Query and QueryRow")

// Begin implements pgx.Tx.
func (t *transaction) Begin(context.Context) (pgx.Tx, error) { return nil, errUnsupported }

// Prepare implements pgx.Tx.
func (t *transaction) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, errUnsupported
}

// CopyFrom implements pgx.Tx.
func (t *transaction) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errUnsupported
}

// SendBatch implements pgx.Tx.
func (t *transaction) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults { panic(errUnsupported) }

// LargeObjects implements pgx.Tx.
func (t *transaction) LargeObjects() pgx.LargeObjects { panic(errUnsupported) }

// laterTx is a transaction for the job queue that sends the jobs later.
type laterTx struct {
	pgx.Tx
	later db.Later
}

// Exec implements pgx.Tx for statements whose result the caller ignores.
func (t laterTx) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	t.later.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

// CopyFrom implements pgx.Tx with an insertion of each row. pgx must know the types of the columns, so it does not work
// with the execution modes exec and simple_protocol.
func (t laterTx) CopyFrom(_ context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (n int64, err error) {
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
		t.later.Queue(sql, values...)
	}
	return n, rows.Err()
}
