package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Unmerge implements memory.Store.
func (m Memories) Unmerge(ctx context.Context, scope tenant.Scope, in memory.UnmergeInput) ([]string, error) {
	var ids []string
	err := m.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		ids = nil
		q.Later().AwaitUsage(string(scope.Tenant))
		var err error
		if ids, err = lockMerged(ctx, q, scope, in); err != nil || len(ids) == 0 {
			return err
		}
		return m.unmerge(ctx, tx, q, scope, ids)
	})
	if err != nil {
		return nil, fmt.Errorf("restore merged memories: %w", err)
	}
	return ids, nil
}

// lockMerged locks the merged memories to restore and returns their ids.
func lockMerged(ctx context.Context, q *db.Queries, scope tenant.Scope, in memory.UnmergeInput) ([]string, error) {
	kept, ok := parseID(in.Kept)
	if !ok {
		return nil, memory.ErrMemoryNotFound
	}
	p := db.LockMergedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Kept: kept, Ids: parseIDs(in.IDs)}
	known, err := q.IsMemory(ctx, db.IsMemoryParams{TenantID: p.TenantID, UserID: p.UserID, ID: kept})
	if err == nil && !known {
		err = memory.ErrMemoryNotFound
	}
	if err != nil {
		return nil, err
	}
	if len(in.IDs) > 0 && len(p.Ids) == 0 { // no valid id, which is not all
		return nil, memory.MissingMerged(missing(in.IDs, nil))
	}
	ids, err := q.LockMerged(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("lock merged memories: %w", err)
	}
	if len(ids) == 0 && len(in.IDs) == 0 {
		return nil, checkMergedItself(ctx, q, scope, kept)
	}
	found := make(map[string]bool, len(ids))
	for _, id := range ids {
		found[id] = true
	}
	return ids, memory.MissingMerged(missing(in.IDs, found))
}

// checkMergedItself returns memory.MergedItself if a memory was merged.
func checkMergedItself(ctx context.Context, q *db.Queries, scope tenant.Scope, id string) error {
	merged, err := q.MergedAmong(ctx, db.MergedAmongParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: []string{id}})
	if err != nil {
		return fmt.Errorf("find merged memories: %w", err)
	}
	for _, m := range merged {
		return memory.MergedItself(m.MergedInto)
	}
	return nil
}

// unmerge restores locked memories. Their units are new: the index may still delete the old ones, and the model may
// have changed. The index job embeds them.
func (m Memories) unmerge(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, ids []string) error {
	p := db.RestoreMergedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids}
	rows, err := q.RestoreMerged(ctx, p)
	if err != nil {
		return fmt.Errorf("restore memories: %w", err)
	}
	q.Later().RelinkRestored(db.RelinkRestoredParams(p))
	q.Later().MarkErasing(erasingUndoable)
	q.Later().DeleteRestored(db.DeleteRestoredParams(p))
	deltas := map[int64]int64{}
	u := db.RestoreMemoryUnitsParams{TenantID: p.TenantID, UserID: p.UserID}
	for _, r := range rows {
		deltas[r.BucketID]++
		for _, unit := range retrieve.MemoryUnits(r.Text) {
			u.MemoryIds, u.Groups = append(u.MemoryIds, r.ID), append(u.Groups, r.BucketID)
			u.Starts, u.Ends = append(u.Starts, integer(unit.Start)), append(u.Ends, integer(unit.End))
			u.Lexicals = append(u.Lexicals, indexedWords(unit.Lexical))
		}
	}
	units, err := q.RestoreMemoryUnits(ctx, u)
	if err != nil {
		return fmt.Errorf("write units: %w", err)
	}
	addToBuckets(q, scope, deltas)
	if err := m.DB.insertSync(ctx, tx, q, scope.Tenant, unitIDs(units)); err != nil {
		return err
	}
	appendAudit(ctx, q, scope, audit.MemoryUnmerge, ids...)
	return nil
}

// ListMerged implements memory.Store.
func (m Memories) ListMerged(ctx context.Context, scope tenant.Scope, id string) ([]memory.MergedMemory, error) {
	key, ok := parseID(id)
	if !ok {
		return nil, nil
	}
	var out []memory.MergedMemory
	err := m.DB.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.ListMerged(ctx, db.ListMergedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: key, Page: memory.MaxMerged})
		out = collect(rows, func(r db.ListMergedRow) memory.MergedMemory {
			return memory.MergedMemory{ID: r.ID, Text: r.Text, CreatedAt: r.CreatedAt.UTC(), MergedAt: r.MergedAt.UTC()}
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list merged memories: %w", err)
	}
	return out, nil
}

// mergedByID is the query of merged memories with these ids, like memoriesByID, in the buckets in which they would be
// restored.
const mergedByID = `select g.tenant_id, g.user_id, g.id, g.seq, (select b.id from buckets b where b.tenant_id = $1 and b.user_id = $2
		order by b.id = g.bucket_id desc, b.is_default desc limit 1) as bucket_id,
	g.text, g.tokens, g.source, g.version, g.created_at, g.updated_at, g.superseded_by, g.superseded_at, g.agent_id, g.run_id, g.tags, g.metadata, g.attribute_bytes
	from merged_memories g where g.tenant_id = $1 and g.user_id = $2 and g.id = any($3::uuid[]) limit 1`

// GetMerged implements memory.Store.
func (m Memories) GetMerged(ctx context.Context, scope tenant.Scope, id string) (memory.Memory, error) {
	var out memory.Memory
	ids := parseIDs([]string{id})
	err := m.DB.readScope(ctx, scope, func(tx db.DBTX, q *db.Queries) error {
		found, err := queryMemories(ctx, tx, len(ids), selectMemories(mergedByID, ""), string(scope.Tenant), int64(scope.User), ids)
		if err != nil {
			return err
		}
		into, err := q.MergedAmong(ctx, db.MergedAmongParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids})
		if err == nil && (len(found) == 0 || len(into) == 0) {
			err = memory.ErrMemoryNotFound
		}
		if err == nil {
			out = found[0]
			out.MergedInto = into[0].MergedInto
		}
		return err
	})
	if err != nil {
		return memory.Memory{}, fmt.Errorf("read merged memory: %w", err)
	}
	return out, nil
}
