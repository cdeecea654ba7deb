package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	more := len(out) > f.Limit
	return out[:min(len(out), f.Limit)], more, nil
}

// listMemories returns up to one memory more than the limit. Each combination of
// filter and order is a separate statement, so that each uses an index.
func listMemories(ctx context.Context, tx db.DBTX, scope tenant.Scope, f memory.Filter) ([]memory.Memory, error) {
	sql := "select m.* from memories m where m.tenant_id = $1 and m.user_id = $2 and ($3::timestamptz is null or m.created_at < $3)"
	args := []any{string(scope.Tenant), int64(scope.User), optionalTime(f.AsOf), f.Skip, f.Limit + 1}
	if f.Bucket != 0 {
		sql += " and m.bucket_id = $6"
		args = append(args, f.Bucket)
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
	return queryMemories(ctx, tx, f.Limit+1, selectMemories(sql+order+" offset $4 limit $5")+order, args...)
}

// selectMemories selects the memories of a query as they were known before a time ($3, null for now): with the text, version and
// links of then. The tenant is $1 and the user $2. Null is cheaper to read than an empty array or object. The query has a limit, so that
// PostgreSQL executes it first: links are looked up only for its rows, and only if the user has any. The names of buckets are read once,
// while a join without statistics would look them up for each row.
func selectMemories(query string) string {
	return `select m.id, m.seq, m.bucket_id,
		(select jsonb_object_agg(b.id, b.name) from buckets b where b.tenant_id = $1 and b.user_id = $2) ->> m.bucket_id::text, coalesce(v.text, m.text), m.tokens, m.source, coalesce(v.version, m.version),
		m.created_at, coalesce(v.created_at, m.updated_at),
		coalesce(case when m.superseded_by is not null and ($3::timestamptz is null or m.superseded_at < $3) then (
			select n.id::text from memories n where n.tenant_id = m.tenant_id and n.user_id = m.user_id and n.id = m.superseded_by limit 1) end, ''),
		case when exists (select from memories l where l.tenant_id = $1 and l.user_id = $2 and l.superseded_by is not null) then
			nullif(array(select o.id::text from memories o where o.tenant_id = m.tenant_id and o.user_id = m.user_id and o.superseded_by = m.id
				and ($3::timestamptz is null or o.superseded_at < $3) order by o.seq), '{}') end,
		m.agent_id, m.run_id, nullif(m.tags, '{}'), nullif(m.metadata, '{}'),
		case when exists (select from merged_memories l where l.tenant_id = $1 and l.user_id = $2) then (select count(*) from merged_memories g
			where g.tenant_id = m.tenant_id and g.user_id = m.user_id and g.merged_into = m.id) else 0 end
	from (` + query + `) m left join lateral (select e.text, e.version, e.created_at from memory_versions e
		where m.updated_at >= $3 and e.tenant_id = m.tenant_id and e.user_id = m.user_id and e.memory_id = m.id and e.created_at < $3
		order by e.version desc limit 1) v on true`
}

// memoriesByID is the query of memories with these ids. Each is looked up apart, which needs no statistics.
const memoriesByID = `select m.* from unnest($4::uuid[]) w(id) cross join lateral (select * from memories m where m.tenant_id = $1 and m.user_id = $2
	and m.id = w.id and ($3::timestamptz is null or m.created_at < $3) limit 1) m`

// queryMemories returns the memories of a query that has at most so many.
func queryMemories(ctx context.Context, tx db.DBTX, most int, sql string, args ...any) ([]memory.Memory, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out := make([]memory.Memory, 0, most)
	var m memory.Memory
	var metadata []byte
	_, err = pgx.ForEachRow(rows, []any{&m.ID, &m.Seq, &m.BucketID, &m.BucketName, &m.Text, &m.Tokens, &m.Source, &m.Version,
		&m.CreatedAt, &m.UpdatedAt, &m.SupersededBy, &m.Supersedes, &m.AgentID, &m.RunID, &m.Tags, &metadata, &m.Merged}, func() error {
		m.CreatedAt, m.UpdatedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC()
		var err error
		m.Attributes, err = toAttributes(m.AgentID, m.RunID, m.Tags, metadata)
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
		sql := "select count(*) from memories m where m.tenant_id = $1 and m.user_id = $2 and " + whereSQL(where, &args)
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
		sql := "select m.id::text from memories m where m.tenant_id = $1 and m.user_id = $2 and " + whereSQL(where, &args) + " order by m.seq limit $3"
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
		out, err = queryMemories(ctx, tx, len(ids), selectMemories(memoriesByID),
			string(scope.Tenant), int64(scope.User), optionalTime(asOf), parseIDs(ids))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read memories: %w", err)
	}
	return out, nil
}
