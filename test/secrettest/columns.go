package secrettest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Columns calls visit with the content of every column of the database that can contain
// text: also of structured and binary ones, the latter as hexadecimal digits.
func Columns(ctx context.Context, ownerURL string, visit func(column, text string)) error {
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `select format('%I', c.relname), format('%I', a.attname)
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped join pg_type t on t.oid = a.atttypid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and t.typname in ('text', 'varchar', 'bpchar', 'name', '_text', '_varchar', 'json', 'jsonb', '_json', '_jsonb', 'bytea', '_bytea', 'tsvector')`)
	if err != nil {
		return fmt.Errorf("list columns: %w", err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name string }])
	if err != nil {
		return fmt.Errorf("list columns: %w", err)
	}
	for _, c := range columns {
		var text bytes.Buffer
		sql := fmt.Sprintf("copy (select %s from %s) to stdout", c.Name, c.Table)
		if _, err := conn.PgConn().CopyTo(ctx, &text, sql); err != nil {
			return fmt.Errorf("read %s.%s: %w", c.Table, c.Name, err)
		}
		visit(c.Table+"."+c.Name, text.String())
	}
	return nil
}
