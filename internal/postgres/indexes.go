package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
)

// unfinishedIndex is an index whose concurrent build was interrupted.
type unfinishedIndex struct{ Table, Name string }

// dropUnfinishedIndexes drops indexes that an interrupted migration has left: "create index concurrently" would fail
// because of them, and with "if not exists" it would accept an invalid one, which no query uses.
func dropUnfinishedIndexes(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	indexes, err := unfinishedIndexes(ctx, pool)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if err := dropUnfinishedIndex(ctx, pool, log, index); err != nil {
			return fmt.Errorf("drop unfinished index %s: %w", index.Name, mapError(err))
		}
	}
	return nil
}

// dropUnfinishedIndex drops an index unless a build that was still running has completed it.
func dropUnfinishedIndex(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, index unfinishedIndex) error {
	for {
		completing := false
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			// The lock waits for a build that is still running. It must be the first statement: the build waits for
			// older snapshots.
			_, err := tx.Exec(ctx, "lock table only "+index.Table+" in share update exclusive mode")
			if err != nil {
				return err
			}
			if completing, err = isCompleting(ctx, tx, index); err != nil || completing {
				return err
			}
			indexes, err := unfinishedIndexes(ctx, tx)
			if err != nil || !slices.Contains(indexes, index) {
				return err
			}
			log.InfoContext(ctx, "dropping the index of an interrupted migration", "index", index.Name, "table", index.Table)
			_, err = tx.Exec(ctx, "drop index "+index.Name)
			return err
		})
		if err != nil || !completing {
			return err
		}
		log.InfoContext(ctx, "waiting for the build of an index", "index", index.Name, "table", index.Table)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migrationRetry):
		}
	}
}

// isCompleting reports whether a transaction that changes the index has not ended. A build releases the lock of the
// table before it commits that the index is valid, and until then "drop index" fails with "tuple concurrently
// updated".
func isCompleting(ctx context.Context, tx pgx.Tx, index unfinishedIndex) (completing bool, err error) {
	err = tx.QueryRow(ctx, `select exists (
		select from pg_index i join pg_locks l on l.locktype = 'transactionid' and l.transactionid = i.xmax where i.indexrelid = to_regclass($1))`,
		index.Name).Scan(&completing)
	return completing, err
}

// unfinishedIndexes lists the invalid indexes of the schema. Those of partitioned tables are not built concurrently;
// they are invalid until each partition has one.
func unfinishedIndexes(ctx context.Context, q db.DBTX) ([]unfinishedIndex, error) {
	rows, err := q.Query(ctx, `select i.indrelid::regclass::text, i.indexrelid::regclass::text
		from pg_index i join pg_class c on c.oid = i.indexrelid
		where c.relnamespace = 'public'::regnamespace and c.relkind = 'i' and not c.relispartition and pg_has_role(c.relowner, 'usage')
			and not i.indisvalid
		order by 2`)
	if err != nil {
		return nil, fmt.Errorf("list unfinished indexes: %w", err)
	}
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[unfinishedIndex])
	if err != nil {
		return nil, fmt.Errorf("list unfinished indexes: %w", err)
	}
	return indexes, nil
}
