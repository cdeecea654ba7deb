package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ retrieve.Searcher = (*DB)(nil)

// Lexical implements retrieve.Searcher, by the function lexical_ranking.
func (d *DB) Lexical(ctx context.Context, scope tenant.Scope, query retrieve.Request) ([]retrieve.Hit, error) {
	var out []retrieve.Hit
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.Lexical(ctx, db.LexicalParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Kind: int16(query.Kind), GroupID: query.Group,
			FromTime: optionalTime(query.From), ToTime: optionalTime(query.To),
			AfterTime: optionalTime(query.After), BeforeTime: optionalTime(query.Before), Query: queriedWords(query.Text), Count: integer(query.Limit),
			Memories: query.Owners,
		})
		out = collect(rows, func(r db.LexicalRow) retrieve.Hit { return retrieve.Hit{ID: retrieve.UnitID(r.ID), Score: r.Score} })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search words: %w", err)
	}
	return out, nil
}

// Describe implements retrieve.Searcher.
func (d *DB) Describe(ctx context.Context, scope tenant.Scope, query retrieve.Request, ids []retrieve.UnitID) ([]retrieve.Described, error) {
	var out []retrieve.Described
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		var err error
		if query.Kind == retrieve.Memory {
			out, err = describeMemories(ctx, q, scope, query, ids)
		} else {
			out, err = describeMessages(ctx, q, scope, query, ids)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("describe units: %w", err)
	}
	return out, nil
}

func describeMessages(ctx context.Context, q *db.Queries, scope tenant.Scope, query retrieve.Request, ids []retrieve.UnitID) ([]retrieve.Described, error) {
	rows, err := q.DescribeUnits(ctx, db.DescribeUnitsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: int64s(ids), GroupID: query.Group, GenerationID: int16(query.Generation),
		FromTime: optionalTime(query.From), ToTime: optionalTime(query.To),
		AfterTime: optionalTime(query.After), BeforeTime: optionalTime(query.Before),
	})
	return collect(rows, toDescribed), err
}

func describeMemories(ctx context.Context, q *db.Queries, scope tenant.Scope, query retrieve.Request, ids []retrieve.UnitID) ([]retrieve.Described, error) {
	rows, err := q.DescribeMemoryUnits(ctx, db.DescribeMemoryUnitsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: int64s(ids), GroupID: query.Group, GenerationID: int16(query.Generation),
		FromTime: optionalTime(query.From), ToTime: optionalTime(query.To),
	})
	return collect(rows, func(r db.DescribeMemoryUnitsRow) retrieve.Described {
		return retrieve.Described{ID: retrieve.UnitID(r.ID), Owner: r.Owner, Start: int(r.SpanStart), End: int(r.SpanEnd),
			Human: true, Text: r.Piece, Heading: r.Heading, Superseded: r.Superseded, Vector: decodeHalf(r.Embedding)}
	}), err
}

func toDescribed(r db.DescribeUnitsRow) retrieve.Described {
	return retrieve.Described{ID: retrieve.UnitID(r.ID), Owner: r.Owner, Seq: int(r.Seq), Start: int(r.SpanStart), End: int(r.SpanEnd),
		Human: r.Sender == "human", At: r.At.UTC(), Text: r.Piece, Heading: r.Heading, Vector: decodeHalf(r.Embedding)}
}

// Resolve implements retrieve.Searcher.
func (d *DB) Resolve(ctx context.Context, scope tenant.Scope, query retrieve.Request, ids []retrieve.UnitID) ([]retrieve.Found, error) {
	var found []retrieve.Found
	err := d.readScope(ctx, scope, func(tx db.DBTX, q *db.Queries) error {
		var err error
		found, err = resolveUnits(ctx, q, scope, query, int64s(ids))
		if err != nil || query.Where.IsZero() {
			return err
		}
		match, err := matching(ctx, tx, scope, query.Where, collect(found, func(f retrieve.Found) string { return f.Owner }))
		found = slices.DeleteFunc(found, func(f retrieve.Found) bool { return !match[f.Owner] })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("resolve units: %w", err)
	}
	return found, nil
}

func resolveUnits(ctx context.Context, q *db.Queries, scope tenant.Scope, query retrieve.Request, ids []int64) ([]retrieve.Found, error) {
	from, to := optionalTime(query.From), optionalTime(query.To)
	if query.Kind == retrieve.Memory {
		rows, err := q.ResolveMemoryUnits(ctx, db.ResolveMemoryUnitsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids, GroupID: query.Group, FromTime: from, ToTime: to,
		})
		return collect(rows, func(r db.ResolveMemoryUnitsRow) retrieve.Found {
			return retrieve.Found{ID: retrieve.UnitID(r.ID), Owner: r.Owner, Seq: int(r.Seq), Start: int(r.SpanStart), End: int(r.SpanEnd), Superseded: r.Superseded}
		}), err
	}
	rows, err := q.ResolveChatUnits(ctx, db.ResolveChatUnitsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids, GroupID: query.Group, FromTime: from, ToTime: to,
		AfterTime: optionalTime(query.After), BeforeTime: optionalTime(query.Before),
	})
	return collect(rows, func(r db.ResolveChatUnitsRow) retrieve.Found {
		return retrieve.Found{ID: retrieve.UnitID(r.ID), Owner: r.Owner, Seq: int(r.Seq), Start: int(r.SpanStart), End: int(r.SpanEnd), At: r.At.UTC()}
	}), err
}
