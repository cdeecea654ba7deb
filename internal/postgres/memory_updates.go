package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Update implements memory.Store.
func (m Memories) Update(ctx context.Context, scope tenant.Scope, e memory.Edit) (int, error) {
	var version int
	id, ok := parseID(e.ID)
	if !ok {
		return 0, fmt.Errorf("update memory: %w", memory.ErrMemoryNotFound)
	}
	err := m.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		var err error
		version, err = m.update(ctx, tx, q, scope, id, e)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("update memory: %w", err)
	}
	return version, nil
}

// update changes a memory. The transaction must hold the lock on the usage row.
func (m Memories) update(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, id string, e memory.Edit) (int, error) {
	p := db.LockMemoryParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id}
	if e.Text != nil {
		p.Text = *e.Text
	}
	before, err := q.LockMemory(ctx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, memory.ErrMemoryNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("lock memory: %w", err)
	}
	if !before.SameText {
		if err := memory.CheckUpdate(int(before.Version), e.UpdateInput); err != nil {
			return 0, err
		}
	}
	changed, err := setAttributes(ctx, q, scope, id, before, e.AttributeChanges)
	if err != nil {
		return 0, err
	}
	bucket := before.BucketID
	if e.Bucket != (memory.BucketRef{}) {
		if bucket, err = findBucket(ctx, q, scope, e.Bucket); err != nil {
			return 0, err
		}
	}
	if e.Text == nil || before.SameText {
		if bucket == before.BucketID {
			if changed {
				appendAudit(ctx, q, scope, audit.MemoryUpdate, id)
			}
			return int(before.Version), nil
		}
		return int(before.Version), m.move(ctx, tx, q, scope, bucket, map[int64][]string{before.BucketID: {id}})
	}
	if err := checkHistory(ctx, q, scope, id, before.Version); err != nil {
		return 0, err
	}
	return m.edit(ctx, tx, q, scope, id, before.BucketID, bucket, e)
}

// checkHistory returns ErrHistoryTooLarge if a memory of this version can have no further one.
func checkHistory(ctx context.Context, q *db.Queries, scope tenant.Scope, id string, version int32) error {
	if version < memory.CheckedVersions {
		return nil
	}
	size, err := q.HistorySize(ctx, db.HistorySizeParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, VersionSize: memory.VersionSize,
	})
	if err == nil && size > memory.MaxHistory {
		return memory.ErrHistoryTooLarge
	}
	return err
}

// edit replaces the text of a memory and moves it to the bucket.
func (m Memories) edit(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, id string, from, bucket int64, e memory.Edit) (int, error) {
	reserve(q, scope, 0, int64(len(*e.Text)), m.embeddedTokens(e.Units))
	row, err := q.EditMemory(ctx, editParams(scope, id, bucket, e))
	if err != nil {
		return 0, fmt.Errorf("edit memory: %w", err)
	}
	relink(q, scope, id, e.Links)
	if bucket != from {
		addToBuckets(q, scope, map[int64]int64{from: -1, bucket: 1})
	}
	if err := m.DB.insertSync(ctx, tx, q, scope.Tenant, unitIDs(row.Units)); err != nil {
		return 0, err
	}
	appendAudit(ctx, q, scope, audit.MemoryUpdate, id)
	return int(row.Version), nil
}

func editParams(scope tenant.Scope, id string, bucket int64, e memory.Edit) db.EditMemoryParams {
	p := db.EditMemoryParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, BucketID: bucket, Text: *e.Text, Tokens: integer(e.Tokens),
	}
	for _, u := range e.Units {
		p.Starts = append(p.Starts, integer(u.Start))
		p.Ends = append(p.Ends, integer(u.End))
		p.Lexicals = append(p.Lexicals, indexedWords(u.Lexical))
		p.Embeddings = append(p.Embeddings, encodeHalf(u.Vector))
		p.Generations = append(p.Generations, int16(u.Generation))
	}
	return p
}

// Move implements memory.Store.
func (m Memories) Move(ctx context.Context, scope tenant.Scope, in memory.MoveInput) ([]string, error) {
	ids := parseIDs(in.IDs)
	err := m.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		found, err := q.LockMemories(ctx, db.LockMemoriesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids})
		if err != nil {
			return fmt.Errorf("lock memories: %w", err)
		}
		byBucket, exists := map[int64][]string{}, map[string]bool{}
		for _, r := range found {
			exists[r.ID] = true
			byBucket[r.BucketID] = append(byBucket[r.BucketID], r.ID)
		}
		if err := memory.MissingMemories(missing(in.IDs, exists)); err != nil {
			return err
		}
		bucket, err := findBucket(ctx, q, scope, in.Bucket)
		if err != nil {
			return err
		}
		delete(byBucket, bucket) // already in the target bucket
		return m.move(ctx, tx, q, scope, bucket, byBucket)
	})
	if err != nil {
		return nil, fmt.Errorf("move memories: %w", err)
	}
	return ids, nil
}

// missing returns the given ids that are not among the found memories, each once.
func missing(given []string, found map[string]bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range given {
		if id, ok := parseID(s); (ok && found[id]) || seen[s] {
			continue
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

// move moves memories, grouped by their current bucket, and replaces their units.
// The transaction must hold the lock on the usage row.
func (m Memories) move(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, to int64, from map[int64][]string) error {
	var ids []string
	deltas := map[int64]int64{}
	for bucket, list := range from {
		ids = append(ids, list...)
		deltas[bucket] -= int64(len(list))
		deltas[to] += int64(len(list))
	}
	if len(ids) == 0 {
		return nil
	}
	p := db.MoveMemoriesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), BucketID: to, Ids: ids}
	q.Later().MoveMemories(p)
	units, err := q.MoveMemoryUnits(ctx, db.MoveMemoryUnitsParams{TenantID: p.TenantID, UserID: p.UserID, BucketID: to, Ids: ids})
	if err != nil {
		return fmt.Errorf("move units: %w", err)
	}
	addToBuckets(q, scope, deltas)
	if err := m.DB.insertSync(ctx, tx, q, scope.Tenant, unitIDs(units)); err != nil {
		return err
	}
	appendAudit(ctx, q, scope, audit.MemoryUpdate, ids...)
	return nil
}

// Versions implements memory.Store.
func (m Memories) Versions(ctx context.Context, scope tenant.Scope, id string, skip, limit int) ([]memory.Version, bool, error) {
	key, ok := parseID(id)
	if !ok {
		return nil, false, fmt.Errorf("list versions: %w", memory.ErrMemoryNotFound)
	}
	var out []memory.Version
	err := m.DB.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.MemoryVersions(ctx, db.MemoryVersionsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), MemoryID: key, Skip: integer(skip), Page: integer(limit + 1),
		})
		if err != nil {
			return err
		}
		out = collect(rows, func(r db.MemoryVersionsRow) memory.Version {
			return memory.Version{Version: int(r.Version), Text: r.Text, CreatedAt: r.CreatedAt.UTC()}
		})
		if len(out) > 0 {
			return nil
		}
		known, err := q.HasMemory(ctx, db.HasMemoryParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: key})
		if err == nil && !known {
			err = memory.ErrMemoryNotFound
		}
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("list versions: %w", err)
	}
	return out[:min(len(out), limit)], len(out) > limit, nil
}

// moveBucket moves a batch of a bucket's memories and returns their number.
func (m Memories) moveBucket(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, from, to int64) (int, error) {
	ids, err := q.LockMemoriesOfBucket(ctx, db.LockMemoriesOfBucketParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), BucketID: from, Batch: moveBatch,
	})
	if err != nil {
		return 0, fmt.Errorf("lock memories: %w", err)
	}
	return len(ids), m.move(ctx, tx, q, scope, to, map[int64][]string{from: ids})
}

// moveBatch is the number of memories one transaction moves out of a bucket that is
// being deleted. The transaction blocks the tenant's other writers.
const moveBatch = 500
