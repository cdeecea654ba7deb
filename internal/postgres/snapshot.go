package postgres

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
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
	begin, err := beginQuery(scope.Tenant, strconv.FormatInt(int64(scope.User), 10))
	if err != nil {
		return nil, err
	}
	// The snapshot is read-only, so the export is recorded before it begins.
	if scope.User != tenant.NoUser {
		err = a.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error { return appendAudit(ctx, q, scope, audit.AccountExport) })
		if err != nil {
			return nil, err
		}
	}
	begin = strings.Replace(begin, "begin", "begin isolation level repeatable read, read only", 1) +
		fmt.Sprintf("; select set_config(name, '%d', true) from pg_settings where name in "+
			"('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')", maxSnapshot.Milliseconds())
	tx, err := a.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return nil, fmt.Errorf("begin snapshot: %w", mapError(err))
	}
	end := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // read-only
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
	return stream(s, `select m.id, m.bucket_id, m.text, m.source, m.version, m.created_at, m.updated_at, v.created_at,
			coalesce(n.id::text, ''), case when n.id is null then 'epoch' else m.superseded_at end, m.agent_id, m.run_id, m.tags, m.metadata
		from memories m join memory_versions v
			on v.tenant_id = m.tenant_id and v.user_id = m.user_id and v.memory_id = m.id and v.version = m.version
		left join memories n on n.tenant_id = m.tenant_id and n.user_id = m.user_id and n.id = m.superseded_by
		where m.tenant_id = $1 and m.user_id = $2 order by m.seq`,
		func(row pgx.Rows) (m account.Memory, err error) {
			var tags []string
			var metadata []byte
			err = row.Scan(&m.ID, &m.Bucket, &m.Text, &m.Source, &m.Version, &m.CreatedAt, &m.UpdatedAt, &m.EditedAt,
				&m.SupersededBy, &m.SupersededAt, &m.AgentID, &m.RunID, &tags, &metadata)
			if err != nil {
				return m, err
			}
			if m.SupersededAt = m.SupersededAt.UTC(); m.SupersededBy == "" {
				m.SupersededAt = time.Time{}
			}
			m.CreatedAt, m.UpdatedAt, m.EditedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC(), m.EditedAt.UTC()
			a, err := toAttributes(m.AgentID, m.RunID, tags, metadata)
			m.Tags, m.Metadata = a.Tags, a.Metadata
			return m, err
		})
}

// Versions implements account.Content.
func (s snapshot) Versions() iter.Seq2[account.Version, error] {
	return stream(s, `select v.memory_id, v.version, v.text, v.created_at
		from memories m join memory_versions v
			on v.tenant_id = m.tenant_id and v.user_id = m.user_id and v.memory_id = m.id and v.version < m.version
		where m.tenant_id = $1 and m.user_id = $2 order by m.seq, v.version`,
		func(row pgx.Rows) (v account.Version, err error) {
			err = row.Scan(&v.Memory, &v.Version, &v.Text, &v.CreatedAt)
			v.CreatedAt = v.CreatedAt.UTC()
			return v, err
		})
}

// Conversations implements account.Content.
func (s snapshot) Conversations() iter.Seq2[chat.Conversation, error] {
	return stream(s, `select id, external_id, platform, platform_name, title, status, pinned, message_count, created_at, updated_at
		from conversations where tenant_id = $1 and user_id = $2 order by id`,
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
