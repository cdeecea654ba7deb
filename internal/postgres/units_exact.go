package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// recentUnconfirmed is the maximum number of scored units that the index may not
	// return yet.
	recentUnconfirmed = 5000
	// matchedUnits is the maximum number of scored units of the memories that match a filter.
	matchedUnits = 50_000
	// everyUnit is the limit if no index contains the units.
	everyUnit = math.MaxInt32
)

// WithinExactLimit implements retrieve.Searcher.
func (d *DB) WithinExactLimit(ctx context.Context, scope tenant.Scope, query retrieve.Request) (bool, error) {
	var n int64
	err := d.readScope(ctx, scope, func(tx db.DBTX, q *db.Queries) (err error) {
		n, err = countUnits(ctx, tx, q, scope, query)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("count units: %w", err)
	}
	return n <= placement.ExactUnits, nil
}

// Exact implements retrieve.Searcher.
func (d *DB) Exact(
	ctx context.Context, scope tenant.Scope, query retrieve.Request, vector []float32,
) ([]retrieve.Hit, retrieve.Coverage, error) {
	var hits []retrieve.Hit
	var coverage retrieve.Coverage
	err := d.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) error {
		coverage = retrieve.Coverage{All: true}
		var err error
		if query.Unindexed {
			hits, err = scoreUnits(ctx, tx, scope, query, liveUnits, everyUnit, vector, &coverage)
			return err
		}
		if query.Owners != nil {
			hits, err = scoreUnits(ctx, tx, scope, query, liveUnits, matchedUnits+1, vector, &coverage)
			return err
		}
		if query.WithinExactLimit {
			hits, err = scoreUnits(ctx, tx, scope, query, liveUnits, placement.ExactUnits+1, vector, &coverage)
			if err != nil || !coverage.Truncated {
				return err
			}
		}
		coverage = retrieve.Coverage{}
		hits, err = scoreUnits(ctx, tx, scope, query, unconfirmedUnits, recentUnconfirmed+1, vector, &coverage)
		return err
	})
	if err != nil {
		return nil, retrieve.Coverage{}, fmt.Errorf("score units: %w", err)
	}
	if coverage.All {
		return best(hits, len(hits)), coverage, nil
	}
	return best(hits, query.Limit), coverage, nil
}

// countUnits counts the user's units, up to placement.ExactUnits + 1. With a time filter it
// counts only the matching units: the index has no times, so scoring as many of
// them here as possible improves the result.
func countUnits(ctx context.Context, tx db.DBTX, q *db.Queries, scope tenant.Scope, query retrieve.Request) (int64, error) {
	if !byMessage(query) && !byOwner(query) {
		return q.CountUnits(ctx, db.CountUnitsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Kind: int16(query.Kind), AtMost: placement.ExactUnits + 1,
		})
	}
	// The indexes are partial, so the kind must be a constant in the plan.
	sql := fmt.Sprintf(`select count(*) from (select from live_units u where tenant_id = $1 and user_id = $2 and kind = %d`, query.Kind)
	args := []any{string(scope.Tenant), int64(scope.User), placement.ExactUnits + 1}
	if byOwner(query) {
		sql += ` and ` + createdBetween(query.Kind, "$4", "$5")
		args = append(args, optionalTime(query.From), optionalTime(query.To))
	}
	if byMessage(query) {
		sql += ` and ` + writtenBetween(fmt.Sprintf("$%d", len(args)+1), fmt.Sprintf("$%d", len(args)+2))
		args = append(args, optionalTime(query.After), optionalTime(query.Before))
	}
	var n int64
	err := tx.QueryRow(ctx, sql+` limit $3) s`, args...).Scan(&n)
	return n, err
}

// byOwner reports whether the query filters on the creation of memories or conversations.
func byOwner(query retrieve.Request) bool { return !query.From.IsZero() || !query.To.IsZero() }

// byMessage reports whether the query filters on the time of messages.
func byMessage(query retrieve.Request) bool {
	return query.Kind == retrieve.Chat && (!query.After.IsZero() || !query.Before.IsZero())
}

// createdBetween returns the condition that the memory or conversation of unit u was created at
// or after the first time and before the second; null means unbounded.
func createdBetween(kind retrieve.Kind, from, to string) string {
	owners, owner := "live_memories", "memory_id"
	if kind == retrieve.Chat {
		owners, owner = "live_conversations", "conversation_id"
	}
	return `exists (select from ` + owners + ` o where o.tenant_id = $1 and o.user_id = $2 and o.id = u.` + owner + `
		and o.created_at >= coalesce(` + from + `::timestamptz, '-infinity') and o.created_at < coalesce(` + to + `::timestamptz, 'infinity'))`
}

// writtenBetween returns the condition that the message of unit u was written at or
// after the first time and before the second; null means unbounded.
func writtenBetween(after, before string) string {
	return `exists (select from messages g where g.tenant_id = $1 and g.user_id = $2
		and g.conversation_id = u.conversation_id and g.seq = u.seq
		and g.created_at >= coalesce(` + after + `::timestamptz, '-infinity') and g.created_at < coalesce(` + before + `::timestamptz, 'infinity'))`
}

// The units to score: all, or those that an index read with bounded staleness may not return. Each part of the latter
// has its own database index; the second is sorted by it, so that PostgreSQL does not read all units of the user in
// the order of their ids instead.
const (
	liveUnits = `select * from live_units where tenant_id = $1 and user_id = $2 and kind = $3`

	unconfirmedUnits = `(select * from live_units where tenant_id = $1 and user_id = $2 and kind = $3
			and indexed_at is null order by id desc limit $7)
		union all (select * from live_units where tenant_id = $1 and user_id = $2 and kind = $3
			and indexed_at > now() - interval '10 seconds' order by indexed_at desc, id desc limit $7)`
)

// scoreUnits scores the newest units of a source that match the query's filters. It sets coverage.Truncated if the
// limit, which is one more than are scored, is reached, and coverage.Missing if a unit has no vector.
func scoreUnits(
	ctx context.Context, tx db.DBTX, scope tenant.Scope, query retrieve.Request, source string, limit int,
	vector []float32, coverage *retrieve.Coverage,
) ([]retrieve.Hit, error) {
	sql := `select u.id, case $10::smallint when u.generation_id then u.embedding when u.next_generation_id then u.next_embedding end from (` + source + `) u where ($4::bigint = 0 or u.group_id = $4)`
	if byOwner(query) {
		sql += ` and ` + createdBetween(query.Kind, "$5", "$6")
	} else {
		sql += ` and $5::timestamptz is null and $6::timestamptz is null`
	}
	if byMessage(query) {
		sql += ` and ` + writtenBetween("$8", "$9")
	} else {
		sql += ` and ($8::timestamptz is null or true) and ($9::timestamptz is null or true)`
	}
	args := []any{string(scope.Tenant), int64(scope.User), int16(query.Kind),
		query.Group, optionalTime(query.From), optionalTime(query.To), limit, optionalTime(query.After), optionalTime(query.Before), int16(query.Generation)}
	if query.Owners != nil {
		sql += ` and u.memory_id = any($11::uuid[])`
		args = append(args, query.Owners)
	}
	rows, err := tx.Query(ctx, sql+` order by u.id desc limit $7::bigint`, args...)
	if err != nil {
		return nil, err
	}
	hits, asked := make([]retrieve.Hit, 0, 256), rebased(vector)
	var id int64
	var stored pgtype.DriverBytes // not copied; valid until the next row
	seen := 0
	_, err = pgx.ForEachRow(rows, []any{&id, &stored}, func() error {
		switch seen++; {
		case seen == limit:
			coverage.Truncated = true
		case stored == nil:
			coverage.Missing = true
		default:
			hits = append(hits, retrieve.Hit{ID: retrieve.UnitID(id), Score: asked.dotHalf(stored)})
		}
		return nil
	})
	return hits, err
}

// Score implements retrieve.Searcher.
func (d *DB) Score(
	ctx context.Context, scope tenant.Scope, g placement.GenerationID, ids []retrieve.UnitID, vector []float32,
) ([]retrieve.Hit, error) {
	var hits []retrieve.Hit
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.Embeddings(ctx, db.EmbeddingsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: int64s(ids), GenerationID: int16(g)})
		asked := rebased(vector)
		hits = collect(rows, func(r db.EmbeddingsRow) retrieve.Hit {
			return retrieve.Hit{ID: retrieve.UnitID(r.ID), Score: asked.dotHalf(r.Embedding)}
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("score units: %w", err)
	}
	return hits, nil
}

// best returns the n best hits, best first.
func best(hits []retrieve.Hit, n int) []retrieve.Hit {
	slices.SortFunc(hits, bestHit)
	return hits[:min(n, len(hits))]
}

// bestHit compares two hits.
func bestHit(a, b retrieve.Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID))
}
