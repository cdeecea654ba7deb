package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// List implements memory.Store.
func (m Memories) List(ctx context.Context, scope tenant.Scope, f memory.Filter) ([]memory.Memory, bool, error) {
	var out []memory.Memory
	err := m.DB.readScope(ctx, scope, func(tx db.DBTX, q *db.Queries) error {
		var err error
		if out, err = listMemories(ctx, tx, scope, f); err != nil || len(out) > 0 || f.Bucket == 0 {
			return err
		}
		known, err := q.HasBucket(ctx, db.HasBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: f.Bucket})
		if err == nil && !known {
			err = memory.ErrBucketNotFound
		}
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("list memories: %w", err)
	}
	limit := f.Limit
	if len(out) > memory.LongTextPage && !areShort(out[:memory.LongTextPage]) {
		limit = min(limit, memory.LongTextPage)
	}
	hasMore := len(out) > limit
	return out[:min(len(out), limit)], hasMore, nil
}

// areShort reports whether a full page of memories is followed by short ones, as pageLimit does.
func areShort(page []memory.Memory) bool {
	tokens := 0
	for _, m := range page {
		tokens += m.Tokens
	}
	return tokens < memory.LongTextPage*memory.LongTextTokens
}

// listMemories returns up to one memory more than the limit. Each combination of
// filter and order is a separate statement, so that each uses an index.
func listMemories(ctx context.Context, tx db.DBTX, scope tenant.Scope, f memory.Filter) ([]memory.Memory, error) {
	sql := "from live_memories m where m.tenant_id = $1 and m.user_id = $2"
	args := []any{string(scope.Tenant), int64(scope.User), f.Skip, f.Limit + 1}
	var asOf string
	if !f.AsOf.IsZero() {
		args = append(args, f.AsOf)
		asOf = fmt.Sprintf("$%d", len(args))
		sql += " and m.created_at < " + asOf
	}
	if f.Bucket != 0 {
		args = append(args, f.Bucket)
		sql += fmt.Sprintf(" and m.bucket_id = $%d", len(args))
	}
	if !f.Where.IsZero() {
		sql += " and " + whereSQL(f.Where, &args)
	}
	comes, order := ">", " order by m.seq"
	if f.Newest {
		comes, order = "<", " order by m.seq desc"
	}
	if f.After != 0 {
		args = append(args, f.After)
		sql += fmt.Sprintf(" and m.seq %s $%d", comes, len(args))
	}
	sql += order + " offset $3"
	limit := "$4"
	if f.Limit > memory.LongTextPage {
		limit = pageLimit(sql)
	}
	if f.Where.IsZero() { // its columns have indexes, too
		tx = withGenericPlan(tx)
	}
	return queryMemories(ctx, tx, f.Limit+1, selectMemories("select m.* "+sql+" limit "+limit, asOf)+order, args...)
}

// pageLimit returns the limit of the memories of a query: $4 if the first of them are short, as areShort reports. It is
// part of the statement because a page of its own would be a round trip more.
func pageLimit(sql string) string {
	return fmt.Sprintf("(case when (select coalesce(sum(f.tokens), 0) from (select m.tokens %s limit %d) f) < %d then $4::int else %d end)",
		sql, memory.LongTextPage, memory.LongTextPage*memory.LongTextTokens, memory.LongTextPage+1)
}

// selectMemories selects the memories of a query, with the text, version and links that they had at a time if asOf is its parameter.
// The tenant is $1 and the user $2. Null is cheaper to read than an empty or usual value, and comparing the size of the attributes is cheaper
// than comparing each with an empty one. The query has a limit, so that PostgreSQL executes it first: links are looked up only for its
// rows, and only if the user has any. The names of buckets other than the default one are read once, while a join without statistics would look
// them up for each row.
func selectMemories(query, asOf string) string {
	text, version, updated, versions, superseded := "m.text", "m.version", "m.updated_at", "", ""
	if asOf != "" {
		text, version, updated = "coalesce(v.text, m.text)", "coalesce(v.version, m.version)", "coalesce(v.created_at, m.updated_at)"
		versions = ` left join lateral (select e.text, e.version, e.created_at from memory_versions e
			where m.updated_at >= ` + asOf + ` and e.tenant_id = m.tenant_id and e.user_id = m.user_id and e.memory_id = m.id and e.created_at < ` + asOf + `
			order by e.version desc limit 1) v on true`
		superseded = " and %s.superseded_at < " + asOf
	}
	return `select m.id, m.seq, m.bucket_id,
		case when m.bucket_id is distinct from (select b.id from buckets b where b.tenant_id = $1 and b.user_id = $2 and b.is_default) then
			(select jsonb_object_agg(b.id, b.name) from buckets b where b.tenant_id = $1 and b.user_id = $2) ->> m.bucket_id::text end,
		` + text + `, m.tokens, nullif(m.source, ''), ` + version + `, m.created_at, nullif(` + updated + `, m.created_at),
		case when m.superseded_by is not null` + strings.ReplaceAll(superseded, "%s", "m") + ` then (
			select n.id::text from live_memories n where n.tenant_id = m.tenant_id and n.user_id = m.user_id and n.id = m.superseded_by limit 1) end,
		case when exists (select from live_memories l where l.tenant_id = $1 and l.user_id = $2 and l.superseded_by is not null) then
			nullif(array(select o.id::text from live_memories o where o.tenant_id = m.tenant_id and o.user_id = m.user_id and o.superseded_by = m.id` +
		strings.ReplaceAll(superseded, "%s", "o") + ` order by o.seq), '{}') end,
		case when m.attribute_bytes > 0 then m.agent_id end, case when m.attribute_bytes > 0 then m.run_id end,
		case when m.attribute_bytes > 0 then m.tags end, case when m.attribute_bytes > 0 then m.metadata end,
		case when exists (select from merged_memories l where l.tenant_id = $1 and l.user_id = $2) then (select count(*) from merged_memories g
			where g.tenant_id = m.tenant_id and g.user_id = m.user_id and g.merged_into = m.id) end
	from (` + query + `) m` + versions
}

// memoriesByID is the query of memories with these ids. Each is looked up apart, which needs no statistics.
const memoriesByID = `select m.* from unnest($3::uuid[]) w(id) cross join lateral (select * from live_memories m where m.tenant_id = $1 and m.user_id = $2
	and m.id = w.id limit 1) m`

// queryMemories returns the memories of a query that has at most so many.
func queryMemories(ctx context.Context, tx db.DBTX, most int, sql string, args ...any) ([]memory.Memory, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out := make([]memory.Memory, 0, min(most, memory.LongTextPage+1))
	var m memory.Memory
	var bucket, source, agent, run, superseded zeronull.Text
	var updated zeronull.Timestamptz
	var merged zeronull.Int8
	var metadata []byte
	_, err = pgx.ForEachRow(rows, []any{&m.ID, &m.Seq, &m.BucketID, &bucket, &m.Text, &m.Tokens, &source, &m.Version,
		&m.CreatedAt, &updated, &superseded, &m.Supersedes, &agent, &run, &m.Tags, &metadata, &merged}, func() error {
		m.BucketName, m.Source, m.SupersededBy, m.Merged = cmp.Or(string(bucket), memory.DefaultBucket), string(source), string(superseded), int(merged)
		m.CreatedAt = m.CreatedAt.UTC()
		if m.UpdatedAt = time.Time(updated).UTC(); m.UpdatedAt.IsZero() {
			m.UpdatedAt = m.CreatedAt
		}
		var err error
		m.Attributes, err = toAttributes(string(agent), string(run), m.Tags, metadata)
		if len(out) == cap(out) {
			out = slices.Grow(out, max(most-len(out), 1))
		}
		out = append(out, m)
		return err
	})
	return out, err
}

// Count implements memory.Store.
func (m Memories) Count(ctx context.Context, scope tenant.Scope, where filter.Filter) (int, error) {
	var n int
	err := m.DB.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) error {
		args := []any{string(scope.Tenant), int64(scope.User)}
		sql := "select count(*) from live_memories m where m.tenant_id = $1 and m.user_id = $2 and " + whereSQL(where, &args)
		return tx.QueryRow(ctx, sql, args...).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count memories: %w", err)
	}
	return n, nil
}

// Matching implements memory.Store.
func (m Memories) Matching(ctx context.Context, scope tenant.Scope, where filter.Filter, limit int) ([]string, error) {
	var ids []string
	err := m.DB.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) (err error) {
		args := []any{string(scope.Tenant), int64(scope.User), limit}
		sql := "select m.id::text from live_memories m where m.tenant_id = $1 and m.user_id = $2 and " + whereSQL(where, &args) + " order by m.seq limit $3"
		ids, err = collectIDs(ctx, tx, sql, args)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find memories: %w", err)
	}
	return ids, nil
}

// Groups implements memory.Store.
func (m Memories) Groups(ctx context.Context, scope tenant.Scope, skip, limit int) ([]memory.Group, int, error) {
	var out []memory.Group
	var all int
	err := m.DB.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.MemoryGroups(ctx, db.MemoryGroupsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Skip: integer(skip), Page: integer(limit),
		})
		if err != nil {
			return err
		}
		n, err := q.CountMemoryGroups(ctx, db.CountMemoryGroupsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		all = int(n)
		out = collect(rows, func(r db.MemoryGroupsRow) memory.Group {
			return memory.Group{Kind: r.Kind, Name: r.Name, Memories: r.Memories, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
		})
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list groups of memories: %w", err)
	}
	return out, all, nil
}

// Labels implements memory.Store.
func (m Memories) Labels(ctx context.Context, scope tenant.Scope) (memory.Labels, error) {
	var out memory.Labels
	err := m.DB.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.MemoryLabels(ctx, db.MemoryLabelsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		out = memory.Labels{}
		for _, row := range rows {
			if row.IsTag {
				out.Tags = append(out.Tags, row.Name)
			} else {
				out.Sources = append(out.Sources, row.Name)
			}
		}
		return err
	})
	if err != nil {
		return memory.Labels{}, fmt.Errorf("list labels: %w", err)
	}
	return out, nil
}

// ByID implements memory.Store.
func (m Memories) ByID(ctx context.Context, scope tenant.Scope, ids []string, asOf time.Time) ([]memory.Memory, error) {
	var out []memory.Memory
	err := m.DB.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) (err error) {
		query, args, then := memoriesByID, []any{string(scope.Tenant), int64(scope.User), parseIDs(ids)}, ""
		if !asOf.IsZero() {
			query, args, then = memoriesByID+" where m.created_at < $4", append(args, asOf), "$4"
		}
		out, err = queryMemories(ctx, tx, len(ids), selectMemories(query, then), args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read memories: %w", err)
	}
	return out, nil
}
