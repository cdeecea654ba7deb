package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ retrieve.Searcher = (*DB)(nil)

// Lexical implements retrieve.Searcher, by the function lexical_search.
func (d *DB) Lexical(ctx context.Context, scope tenant.Scope, query retrieve.Query) ([]retrieve.Hit, error) {
	var out []retrieve.Hit
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.Lexical(ctx, db.LexicalParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Kind: int16(query.Kind), GroupID: query.Group,
			FromTime: optionalTime(query.From), ToTime: optionalTime(query.To), Query: query.Text, Count: int32(query.Limit),
		})
		out = collect(rows, func(r db.LexicalRow) retrieve.Hit { return retrieve.Hit{ID: retrieve.UnitID(r.ID), Score: r.Score} })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search words: %w", err)
	}
	return out, nil
}

// Resolve implements retrieve.Searcher.
func (d *DB) Resolve(ctx context.Context, scope tenant.Scope, query retrieve.Query, ids []retrieve.UnitID) ([]retrieve.Found, error) {
	p := db.ResolveChatUnitsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: int64s(ids), GroupID: query.Group,
		FromTime: optionalTime(query.From), ToTime: optionalTime(query.To),
	}
	var rows []db.ResolveChatUnitsRow
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		if query.Kind == retrieve.Chat {
			rows, err = q.ResolveChatUnits(ctx, p)
			return err
		}
		memories, err := q.ResolveMemoryUnits(ctx, db.ResolveMemoryUnitsParams(p))
		rows = collect(memories, func(r db.ResolveMemoryUnitsRow) db.ResolveChatUnitsRow { return db.ResolveChatUnitsRow(r) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("resolve units: %w", err)
	}
	return collect(rows, func(r db.ResolveChatUnitsRow) retrieve.Found {
		return retrieve.Found{
			ID: retrieve.UnitID(r.ID), Owner: r.Owner, Seq: int(r.Seq), Start: int(r.SpanStart), End: int(r.SpanEnd),
		}
	}), nil
}
