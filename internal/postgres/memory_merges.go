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

// Merge implements memory.Store.
func (m Memories) Merge(ctx context.Context, scope tenant.Scope, in memory.MergeInput) (memory.MergeResult, error) {
	out := memory.MergeResult{IDs: parseIDs(in.IDs)}
	err := m.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		out.Units = nil
		q.Later().AwaitUsage(string(scope.Tenant))
		kept, ids, err := lockMerge(ctx, q, scope, in, out.IDs)
		if err != nil || len(ids) == 0 { // they were merged before
			return err
		}
		out.Units, err = m.merge(ctx, tx, q, scope, kept, ids)
		return err
	})
	if err != nil {
		return memory.MergeResult{}, fmt.Errorf("merge memories: %w", err)
	}
	return out, nil
}

// lockMerge locks the kept memory and those to merge into it, and returns their ids. It returns the error
// of memory.Store for a merge that is not possible.
func lockMerge(ctx context.Context, q *db.Queries, scope tenant.Scope, in memory.MergeInput, ids []string) (string, []string, error) {
	kept, ok := parseID(in.Kept)
	if !ok {
		return "", nil, memory.ErrMemoryNotFound
	}
	p := db.LockMergeParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: append([]string{kept}, ids...)}
	rows, err := q.LockMerge(ctx, p)
	if err != nil {
		return "", nil, fmt.Errorf("lock memories: %w", err)
	}
	merged, err := q.MergedAmong(ctx, db.MergedAmongParams(p))
	if err != nil {
		return "", nil, fmt.Errorf("find merged memories: %w", err)
	}
	add, err := mergeable(kept, in.IDs, rows, merged)
	if err != nil {
		return "", nil, err
	}
	n, err := q.CountMerged(ctx, db.CountMergedParams{TenantID: p.TenantID, UserID: p.UserID, ID: kept})
	if err == nil && int(n)+len(add) > memory.MaxMerged {
		err = memory.TooManyMerged(int(n))
	}
	if err != nil {
		return "", nil, err
	}
	depth, err := q.MergeDepth(ctx, db.MergeDepthParams{TenantID: p.TenantID, UserID: p.UserID, Ids: add, Most: memory.MaxMergeDepth})
	if err == nil && depth >= memory.MaxMergeDepth {
		err = memory.ErrMergeDepth
	}
	return kept, add, err
}

// mergeable returns the memories to merge: those of the rows except for the kept one. merged are those of the given
// ids, or the kept one, that were merged before.
func mergeable(kept string, given []string, rows []db.LockMergeRow, merged []db.MergedAmongRow) ([]string, error) {
	found, subjects, into := map[string]bool{}, map[string]bool{}, map[string]string{}
	var add []string
	for _, r := range rows {
		found[r.ID], subjects[memory.Attributes{Metadata: r.Metadata}.Subject()] = true, true
		if r.ID != kept {
			add = append(add, r.ID)
		}
	}
	if !found[kept] {
		for _, r := range merged {
			into[r.ID] = r.MergedInto
		}
		if into[kept] != "" {
			return nil, memory.MergedElsewhere(into[kept])
		}
		return nil, memory.ErrMemoryNotFound
	}
	for _, r := range merged {
		found[r.ID] = r.MergedInto == kept
	}
	if err := memory.MissingMerge(missing(given, found)); err != nil {
		return nil, err
	}
	if len(subjects) > 1 {
		return nil, memory.ErrOtherSubject
	}
	return add, nil
}

// merge merges locked memories and returns their units. They stay in the usage of the quotas. The transaction
// must hold the lock on the usage row.
func (m Memories) merge(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, kept string, ids []string) ([]retrieve.UnitID, error) {
	p := db.RelinkMergedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids}
	q.Later().InsertMerged(db.InsertMergedParams{TenantID: p.TenantID, UserID: p.UserID, Kept: kept, Ids: ids})
	q.Later().RelinkMerged(p)
	units, err := removeMerged(ctx, q, scope, ids)
	if err != nil {
		return nil, err
	}
	if err := m.DB.insertSync(ctx, tx, q, scope.Tenant, units); err != nil {
		return nil, err
	}
	appendAudit(ctx, q, scope, audit.MemoryMerge, ids...)
	return units, nil
}

// removeMerged deletes memories that are in merged_memories from memories, and returns their units.
func removeMerged(ctx context.Context, q *db.Queries, scope tenant.Scope, ids []string) ([]retrieve.UnitID, error) {
	// The memories are not erased: they can be restored.
	q.Later().MarkErasing(erasingUndoable)
	removed, err := q.DeleteMergedSources(ctx, db.DeleteMergedSourcesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("remove memories: %w", err)
	}
	deltas := map[int64]int64{}
	for _, bucket := range removed.Buckets {
		deltas[bucket]--
	}
	addToBuckets(q, scope, deltas)
	return unitIDs(removed.Units), nil
}

// deleteMerged deletes merged memories among the ids with what was merged into them, and appends them to out. The
// transaction must hold the lock on the usage row.
func deleteMerged(ctx context.Context, q *db.Queries, scope tenant.Scope, ids []string, out *memory.Deleted) error {
	deleted, err := q.DeleteMergedTree(ctx, db.DeleteMergedTreeParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids})
	if err != nil {
		return fmt.Errorf("delete merged memories: %w", err)
	}
	for _, d := range deleted {
		if d.Named {
			out.IDs = append(out.IDs, d.ID)
		} else {
			out.Merged = append(out.Merged, d.ID)
		}
	}
	return nil
}
