package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Values of mnemo.erasing, which repeatable/functions/erasures.sql reads.
const (
	erasingUndoable = "undoable"
	erasingUndo     = "undo"
)

// DeleteUndoable implements memory.Store.
func (m Memories) DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (memory.Deleted, error) {
	var out memory.Deleted
	err := m.DB.deleteUndoable(ctx, scope, func(tx pgx.Tx, q *db.Queries, _ *tenant.FinishDeletionsArgs, deletion string) (int, error) {
		out = memory.Deleted{Undo: deletion}
		q.Later().KeepMemories(db.KeepMemoriesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User),
			Deletion: deletion, UndoWindow: interval(tenant.UndoWindow), Ids: parseIDs(ids)})
		q.Later().KeepMerged(db.KeepMergedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User),
			Deletion: deletion, UndoWindow: interval(tenant.UndoWindow), Ids: parseIDs(ids)})
		if err := m.remove(ctx, tx, q, scope, parseIDs(ids), &out); err != nil || len(out.IDs) == 0 {
			return 0, err
		}
		appendAudit(ctx, q, scope, audit.MemoryDelete, slices.Concat(out.IDs, out.Merged)...)
		return len(out.IDs), nil
	})
	if err != nil {
		return memory.Deleted{}, fmt.Errorf("delete memories: %w", err)
	}
	return out, nil
}

// DeleteUndoable implements chat.Store.
func (c Conversations) DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (chat.Deleted, error) {
	var out chat.Deleted
	err := c.DB.deleteUndoable(ctx, scope, func(tx pgx.Tx, q *db.Queries, job *tenant.FinishDeletionsArgs, deletion string) (int, error) {
		out = chat.Deleted{Undo: deletion}
		q.Later().KeepConversations(db.KeepConversationsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User),
			Deletion: deletion, UndoWindow: interval(tenant.UndoWindow), Ids: parseIDs(ids)})
		// Others become searchable in its place when the deletion is final.
		freed, err := c.remove(ctx, tx, q, scope, parseIDs(ids), &out)
		if err != nil || len(out.IDs) == 0 {
			return 0, err
		}
		b, err := getBalance(ctx, q, scope)
		if err != nil {
			return 0, err
		}
		if b.causeOf(freed) == freedQuota {
			job.User = tenant.NoUser
		}
		appendAudit(ctx, q, scope, audit.ConversationDelete, out.IDs...)
		return len(out.IDs), nil
	})
	if err != nil {
		return chat.Deleted{}, fmt.Errorf("delete conversations: %w", err)
	}
	return out, nil
}

// deleteUndoable runs a deletion, which returns the number of its objects, and commits
// the job that makes it final, whose arguments the deletion may change.
func (d *DB) deleteUndoable(
	ctx context.Context, scope tenant.Scope, remove func(tx pgx.Tx, q *db.Queries, job *tenant.FinishDeletionsArgs, deletion string) (int, error),
) error {
	deletion, err := newID()
	if err != nil {
		return fmt.Errorf("generate id: %w", err)
	}
	return d.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		q.Later().AwaitUsage(string(scope.Tenant))
		q.Later().MarkErasing(erasingUndoable)
		job := tenant.FinishDeletionsArgs(scope)
		n, err := remove(tx, q, &job, deletion)
		if err != nil || n == 0 {
			return err
		}
		_, err = d.jobs.InsertTx(ctx, tx, job,
			&river.InsertOpts{Queue: queue.Recent, MaxAttempts: maxAttempts, ScheduledAt: time.Now().Add(tenant.UndoWindow + time.Second)})
		if err != nil {
			return fmt.Errorf("commit job: %w", err)
		}
		return nil
	})
}

// FinishDeletions makes the deletions of the tenant final whose time to undo them is over. Then conversations of the user, or of all users
// without one, become active in place of those that were deleted.
func (d *DB) FinishDeletions(ctx context.Context, scope tenant.Scope) error {
	err := d.expire(ctx, scope.Tenant, func(q *db.Queries) (int64, error) {
		return q.ExpireDeletions(ctx, db.ExpireDeletionsParams{TenantID: string(scope.Tenant), Batch: expireBatch})
	})
	if err != nil {
		return fmt.Errorf("finish deletions: %w", err)
	}
	if scope.User == tenant.NoUser {
		return d.rebalanceAll(ctx, scope, freedQuota)
	}
	return d.rebalanceAll(ctx, scope, userChange)
}

// undelete restores what a deletion removed, in a transaction that holds the lock of the
// usage row. It returns NotFound if the deletion is final or unknown.
func (d *DB) undelete(ctx context.Context, scope tenant.Scope, deletion, kind string, restore func(tx pgx.Tx, q *db.Queries, contents [][]byte) error) error {
	id, ok := parseID(deletion)
	if !ok {
		return tenant.ErrDeletionFinal
	}
	return d.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		q.Later().MarkErasing(erasingUndo)
		contents, err := q.TakeDeletion(ctx, db.TakeDeletionParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Kind: kind})
		if err != nil {
			return err
		}
		if len(contents) == 0 {
			return tenant.ErrDeletionFinal
		}
		return restore(tx, q, contents)
	})
}

// Undelete implements memory.Store.
func (m Memories) Undelete(ctx context.Context, scope tenant.Scope, deletion string) ([]string, error) {
	var ids []string
	err := m.DB.undelete(ctx, scope, deletion, "memory", func(tx pgx.Tx, q *db.Queries, contents [][]byte) error {
		var merged []string
		var err error
		if ids, merged, err = restoreMemories(ctx, tx, q, scope, contents); err != nil {
			return err
		}
		if err := m.DB.restoreUnits(ctx, tx, q, scope, contents); err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.MemoryUndelete, slices.Concat(ids, merged)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("undelete memories: %w", err)
	}
	return ids, nil
}

// restoreMemories inserts the rows of memories, and of those that were merged into them, with their versions, and counts
// them. It returns the ids of both. A memory whose bucket was deleted in the meantime is then in the default bucket.
func restoreMemories(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, contents [][]byte) (ids, merged []string, err error) {
	rows, err := insertKept(ctx, tx, "memories", "row", `from (select content from unnest($1::jsonb[]) as c (content) where content ? 'row') c
		cross join lateral (
			select b.id from buckets b where b.tenant_id = $2 and b.user_id = $3
				and (b.is_default or b.id = (c.content -> 'row' ->> 'bucket_id')::bigint)
			order by b.id = (c.content -> 'row' ->> 'bucket_id')::bigint desc limit 1) home
		cross join lateral jsonb_populate_record(null::memories, c.content -> 'row' || jsonb_build_object('bucket_id', home.id)) r`,
		"returning id::text, bucket_id", contents, string(scope.Tenant), int64(scope.User))
	if err != nil {
		return nil, nil, fmt.Errorf("insert memories: %w", err)
	}
	var id string
	var bucket int64
	deltas := map[int64]int64{}
	_, err = pgx.ForEachRow(rows, []any{&id, &bucket}, func() error {
		ids = append(ids, id)
		deltas[bucket]++
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("insert memories: %w", err)
	}
	rows, err = insertKept(ctx, tx, "merged_memories", "merged", `from (select content from unnest($1::jsonb[]) as c (content) where content ? 'merged') c
		cross join lateral jsonb_populate_record(null::merged_memories, c.content -> 'merged') r`, "returning id::text", contents)
	if err == nil {
		merged, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("insert merged memories: %w", err)
	}
	if err := insertKeptParts(ctx, tx, "memory_versions", "versions", contents); err != nil {
		return nil, nil, fmt.Errorf("insert versions: %w", err)
	}
	all := slices.Concat(ids, merged)
	bytes, err := q.MemoryBytes(ctx, db.MemoryBytesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: all})
	if err != nil {
		return nil, nil, fmt.Errorf("count bytes: %w", err)
	}
	reserve(q, scope, int64(len(all)), bytes, 0)
	addToBuckets(q, scope, deltas)
	return ids, merged, nil
}

// Undelete implements chat.Store.
func (c Conversations) Undelete(ctx context.Context, scope tenant.Scope, deletion string) ([]string, error) {
	var ids []string
	err := c.DB.undelete(ctx, scope, deletion, "conversation", func(tx pgx.Tx, q *db.Queries, contents [][]byte) error {
		var err error
		if ids, err = restoreConversations(ctx, tx, q, scope, contents); err != nil {
			return err
		}
		if err := c.DB.restoreUnits(ctx, tx, q, scope, contents); err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.ConversationUndelete, ids...)
		return c.DB.rebalanceOrEnqueue(ctx, tx, q, scope, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("undelete conversations: %w", err)
	}
	return ids, nil
}

// restoreConversations inserts the rows of conversations with their messages, and counts
// them.
func restoreConversations(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, contents [][]byte) ([]string, error) {
	rows, err := insertKept(ctx, tx, "conversations", "row",
		"from unnest($1::jsonb[]) as c (content) cross join lateral jsonb_populate_record(null::conversations, c.content -> 'row') r",
		"on conflict (tenant_id, user_id, platform, external_id) do nothing returning id::text, status, bytes", contents)
	if err != nil {
		return nil, fmt.Errorf("insert conversations: %w", err)
	}
	var ids []string
	var id, status string
	var bytes, storage int64
	var counts chat.StatusCounts
	_, err = pgx.ForEachRow(rows, []any{&id, &status, &bytes}, func() error {
		ids = append(ids, id)
		storage += bytes
		counts.Move("", chat.Status(status))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("insert conversations: %w", err)
	}
	if len(ids) < len(contents) {
		return nil, chat.ErrStoredAgain
	}
	if err := insertKeptParts(ctx, tx, "messages", "messages", contents); err != nil {
		return nil, fmt.Errorf("insert messages: %w", err)
	}
	reserve(q, scope, 0, storage, 0)
	addConversations(q, scope, counts)
	return ids, nil
}

// restoreUnits inserts copies of the units with new ids, as after every change: the index
// may still delete the old ones. Their vectors need not be computed again.
func (d *DB) restoreUnits(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, contents [][]byte) error {
	columns, err := keptColumns(ctx, tx, "units", "units", contents)
	if err != nil || len(columns) == 0 {
		return err
	}
	columns = slices.DeleteFunc(columns, func(c string) bool { return c == "id" || c == "indexed_at" })
	values := strings.Replace("u."+strings.Join(columns, ", u."), "u.group_id", "coalesce(m.bucket_id, u.group_id)", 1)
	rows, err := tx.Query(ctx, fmt.Sprintf(`
		insert into units (%s) select %s
		from unnest($1::jsonb[]) as c (content)
		cross join lateral jsonb_populate_recordset(null::units, c.content -> 'units') u
		left join lateral (select x.bucket_id from memories x where x.tenant_id = $2 and x.user_id = $3 and x.id = u.memory_id limit 1) m on true
		order by u.id returning id`, strings.Join(columns, ", "), values), contents, string(scope.Tenant), int64(scope.User))
	if err != nil {
		return fmt.Errorf("insert units: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("insert units: %w", err)
	}
	return d.insertSync(ctx, tx, q, scope.Tenant, unitIDs(ids))
}
