package postgres

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxSnapshot is the timeout of a snapshot's transaction. It overrides the
	// timeouts of the database, which are too short for slow readers.
	maxSnapshot = 2 * time.Hour
	// endTimeout limits the rollback after the context has ended.
	endTimeout = 5 * time.Second
)

// Accounts implements account.Store.
type Accounts struct{ *DB }

var (
	_ account.Store   = Accounts{}
	_ account.Content = snapshot{}
)

// Accounts returns the store of accounts.
func (d *DB) Accounts() Accounts { return Accounts{d} }

// Snapshot implements account.Store.
func (a Accounts) Snapshot(ctx context.Context, scope tenant.Scope) (*account.Snapshot, error) {
	// The snapshot is read-only, so the export is recorded before it begins.
	if scope.User != tenant.NoUser {
		err := a.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
			appendAudit(ctx, q, scope, audit.AccountExport)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	tx, end, err := a.beginSnapshot(ctx, scope.Tenant, strconv.FormatInt(int64(scope.User), 10))
	if err != nil {
		return nil, err
	}
	row, err := db.New(tx).CountAccount(ctx, db.CountAccountParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		end()
		return nil, fmt.Errorf("count account: %w", mapError(err))
	}
	return &account.Snapshot{
		Content: snapshot{ctx, tx, scope}, Close: end, At: row.At.UTC(),
		Counts: account.Counts{Buckets: row.Buckets, Memories: row.Memories, Versions: row.Versions,
			Conversations: row.Conversations, Messages: row.Messages},
	}, nil
}

// beginSnapshot begins a read-only transaction for slow readers, which sees the rows at this time and locks none of them.
func (d *DB) beginSnapshot(ctx context.Context, id tenant.ID, user string) (tx pgx.Tx, end func(), err error) {
	canonical, ok := parseID(string(id))
	if !ok {
		return nil, nil, unknownTenant(id)
	}
	// One round trip. The simple protocol has no parameters, so both values are validated.
	begin := fmt.Sprintf("begin isolation level repeatable read, read only; "+
		"select set_config('mnemo.tenant', '%s', true), set_config('mnemo.user', '%s', true); "+
		"select set_config(name, '%d', true) from pg_settings where name in "+
		"('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')", canonical, user, maxSnapshot.Milliseconds())
	tx, err = d.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return nil, nil, fmt.Errorf("begin snapshot: %w", mapError(err))
	}
	return tx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // read-only
	}, nil
}

// snapshot is a transaction that streams the data of one user.
type snapshot struct {
	ctx   context.Context //nolint:containedctx // the context of the transaction
	tx    pgx.Tx
	scope tenant.Scope
}

// Buckets implements account.Content.
func (s snapshot) Buckets() iter.Seq2[account.Bucket, error] {
	return stream(s, `select id, name, description, is_default, created_at from buckets
		where tenant_id = $1 and user_id = $2 order by is_default desc, id`,
		func(row pgx.Rows) (b account.Bucket, err error) {
			err = row.Scan(&b.ID, &b.Name, &b.Description, &b.Default, &b.CreatedAt)
			b.CreatedAt = b.CreatedAt.UTC()
			return b, err
		})
}

// Memories implements account.Content.
func (s snapshot) Memories() iter.Seq2[account.Memory, error] {
	return concat(stream(s, exportedMemories("live_memories m", "m.bucket_id", "'', 'epoch'::timestamptz", "m.seq"), scanMemory),
		stream(s, mergedTree+exportedMemories(mergedInOrder, homeBucket, "m.merged_into::text, m.merged_at", "t.depth, m.seq"), scanMemory))
}

// Versions implements account.Content.
func (s snapshot) Versions() iter.Seq2[account.Version, error] {
	return concat(stream(s, exportedVersions("live_memories m", "m.seq"), scanVersion),
		stream(s, mergedTree+exportedVersions(mergedInOrder, "t.depth, m.seq"), scanVersion))
}

const (
	// mergedTree has the merged memories with their distance from a memory.
	mergedTree = `with recursive tree as (
		select g.id, 1 as depth from live_memories m join merged_memories g on g.tenant_id = $1 and g.user_id = $2 and g.merged_into = m.id
		where m.tenant_id = $1 and m.user_id = $2
		union all
		select g.id, t.depth + 1 from tree t join merged_memories g on g.tenant_id = $1 and g.user_id = $2 and g.merged_into = t.id
	) `
	mergedInOrder = "tree t join merged_memories m on m.id = t.id"
	// homeBucket is the bucket in which a merged memory would be restored, as in RestoreMerged.
	homeBucket = `(select b.id from buckets b where b.tenant_id = $1 and b.user_id = $2
		order by b.id = m.bucket_id desc, b.is_default desc limit 1)`
)

// exportedMemories is the query of memories or merged memories.
func exportedMemories(from, bucket, merged, order string) string {
	return `select m.id, ` + bucket + `, m.text, m.source, m.version, m.created_at, m.updated_at, v.created_at,
			coalesce(n.id::text, ''), case when n.id is null then 'epoch' else m.superseded_at end, ` + merged + `, m.agent_id, m.run_id, m.tags, m.metadata
		from ` + from + ` join memory_versions v
			on v.tenant_id = m.tenant_id and v.user_id = m.user_id and v.memory_id = m.id and v.version = m.version
		left join live_memories n on n.tenant_id = m.tenant_id and n.user_id = m.user_id and n.id = m.superseded_by
		where m.tenant_id = $1 and m.user_id = $2 order by ` + order
}

func scanMemory(row pgx.Rows) (m account.Memory, err error) {
	var tags []string
	var metadata []byte
	err = row.Scan(&m.ID, &m.Bucket, &m.Text, &m.Source, &m.Version, &m.CreatedAt, &m.UpdatedAt, &m.EditedAt,
		&m.SupersededBy, &m.SupersededAt, &m.MergedInto, &m.MergedAt, &m.AgentID, &m.RunID, &tags, &metadata)
	if err != nil {
		return m, err
	}
	if m.SupersededAt = m.SupersededAt.UTC(); m.SupersededBy == "" {
		m.SupersededAt = time.Time{}
	}
	if m.MergedAt = m.MergedAt.UTC(); m.MergedInto == "" {
		m.MergedAt = time.Time{}
	}
	m.CreatedAt, m.UpdatedAt, m.EditedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC(), m.EditedAt.UTC()
	a, err := toAttributes(m.AgentID, m.RunID, tags, metadata)
	m.Tags, m.Metadata = a.Tags, a.Metadata
	return m, err
}

// exportedVersions is the query of the earlier versions of memories or merged memories.
func exportedVersions(from, order string) string {
	return `select v.memory_id, v.version, v.text, v.created_at
		from ` + from + ` join memory_versions v
			on v.tenant_id = m.tenant_id and v.user_id = m.user_id and v.memory_id = m.id and v.version < m.version
		where m.tenant_id = $1 and m.user_id = $2 order by ` + order + `, v.version`
}

func scanVersion(row pgx.Rows) (v account.Version, err error) {
	err = row.Scan(&v.Memory, &v.Version, &v.Text, &v.CreatedAt)
	v.CreatedAt = v.CreatedAt.UTC()
	return v, err
}

// Conversations implements account.Content.
func (s snapshot) Conversations() iter.Seq2[chat.Conversation, error] {
	return stream(s, `select id, external_id, platform, platform_name, title, status, pinned, message_count, created_at, updated_at
		from live_conversations where tenant_id = $1 and user_id = $2 order by id`,
		func(row pgx.Rows) (c chat.Conversation, err error) {
			err = row.Scan(&c.ID, &c.ExternalID, &c.Platform, &c.PlatformName, &c.Title, &c.Status, &c.Pinned,
				&c.MessageCount, &c.CreatedAt, &c.UpdatedAt)
			c.CreatedAt, c.UpdatedAt = c.CreatedAt.UTC(), c.UpdatedAt.UTC()
			return c, err
		})
}

// Messages implements account.Content.
func (s snapshot) Messages() iter.Seq2[account.Message, error] {
	return stream(s, `select conversation_id, seq, external_id, sender, text, created_at
		from messages where tenant_id = $1 and user_id = $2 order by conversation_id, seq`,
		func(row pgx.Rows) (m account.Message, err error) {
			err = row.Scan(&m.Conversation, &m.Index, &m.ExternalID, &m.Sender, &m.Text, &m.CreatedAt)
			m.CreatedAt = m.CreatedAt.UTC()
			return m, err
		})
}

// stream yields the rows of a query with the tenant ($1) and the user ($2).
func stream[T any](s snapshot, sql string, scan func(pgx.Rows) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := s.tx.Query(s.ctx, sql, string(s.scope.Tenant), int64(s.scope.User))
		if err != nil {
			yield(none, fmt.Errorf("read snapshot: %w", mapError(err)))
			return
		}
		defer rows.Close()
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				yield(none, fmt.Errorf("read snapshot: %w", mapError(err)))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, fmt.Errorf("read snapshot: %w", mapError(err)))
		}
	}
}

// concat yields the records of one sequence and then those of another. It ends after the first error.
func concat[T any](first, second iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range first {
			if !yield(v, err) || err != nil {
				return
			}
		}
		second(yield)
	}
}
