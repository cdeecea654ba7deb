package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// keptColumns returns the columns of a table that the rows kept in a part of deletions have. An undo inserts only these: a migration may have added others
// since, which have a default.
func keptColumns(ctx context.Context, tx pgx.Tx, table, part string, contents [][]byte) ([]string, error) {
	rows, err := tx.Query(ctx, `select a.attname::text from (
			select k.kept from unnest($1::jsonb[]) c (content) cross join lateral jsonb_path_query(c.content, ('$.' || $3 || '[*]')::jsonpath) k (kept) limit 1) r
		join pg_attribute a on a.attrelid = $2::text::regclass and a.attnum > 0 and not a.attisdropped and r.kept ? a.attname::text
		order by a.attnum`, contents, table, part)
	if err != nil {
		return nil, fmt.Errorf("list columns of %s: %w", table, err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list columns of %s: %w", table, err)
	}
	return columns, nil
}

// insertKept inserts the rows of a part of deletions into a table. from is the query of their records, r, and returning what the insertion
// returns. It returns no rows if nothing was kept.
func insertKept(ctx context.Context, tx pgx.Tx, table, part, from, returning string, contents [][]byte, args ...any) (pgx.Rows, error) {
	columns, err := keptColumns(ctx, tx, table, part, contents)
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return tx.Query(ctx, "select from users where false")
	}
	sql := fmt.Sprintf("insert into %s (%s) select r.%s %s %s", table, strings.Join(columns, ", "), strings.Join(columns, ", r."), from, returning)
	return tx.Query(ctx, sql, append([]any{contents}, args...)...)
}

// insertKeptParts inserts the rows of a part of deletions that are a list.
func insertKeptParts(ctx context.Context, tx pgx.Tx, table, part string, contents [][]byte) error {
	from := fmt.Sprintf("from unnest($1::jsonb[]) as c (content) cross join lateral jsonb_populate_recordset(null::%s, c.content -> '%s') r", table, part)
	rows, err := insertKept(ctx, tx, table, part, from, "", contents)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}
