package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
)

// restoring is one step of a restore, in a transaction that has locked the rows
// of the import and then of the usage, in the same order as an account deletion.
type restoring struct {
	db    *DB
	tx    pgx.Tx
	q     *db.Queries
	run   importer.Run
	begun bool
	done  importer.Progress
}

// restoreStep runs a step of a restore; ErrLeaseLost.
func (i Imports) restoreStep(ctx context.Context, run importer.Run, step func(*restoring) error) error {
	return i.inScope(ctx, run.Scope, func(tx pgx.Tx, q *db.Queries) error {
		row, err := q.LockRestore(ctx, db.LockRestoreParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return importer.ErrLeaseLost
		}
		if err != nil {
			return fmt.Errorf("lock import: %w", err)
		}
		if _, err := q.LockUsage(ctx, string(run.Tenant)); err != nil {
			return orUnknown(err, run.Tenant)
		}
		if err := requireImporter(ctx, q, run.Scope); err != nil {
			return err
		}
		x := &restoring{db: i.DB, tx: tx, q: q, run: run, begun: row.Platform == importer.ArchivePlatform}
		if x.begun {
			if err := json.Unmarshal(row.Notes, &x.done); err != nil {
				return fmt.Errorf("read progress: %w", err)
			}
		}
		return step(x)
	})
}

func (x *restoring) setProgress(ctx context.Context, p importer.Progress) error {
	notes, err := json.Marshal(p)
	if err != nil {
		return err
	}
	err = x.q.SetRestoreProgress(ctx, db.SetRestoreProgressParams{
		TenantID: string(x.run.Tenant), UserID: int64(x.run.User), ID: x.run.ID, Notes: notes, Lease: seconds(batchLease),
	})
	if err != nil {
		return fmt.Errorf("set progress: %w", err)
	}
	return nil
}

// Begin implements importer.Restorer.
func (i Imports) Begin(ctx context.Context, run importer.Run, buckets []account.Bucket, conversations int) (importer.Progress, error) {
	var done importer.Progress
	err := i.restoreStep(ctx, run, func(x *restoring) error {
		done = x.done
		if x.begun {
			return nil
		}
		empty, err := x.q.AccountIsEmpty(ctx, db.AccountIsEmptyParams{TenantID: string(run.Tenant), UserID: int64(run.User)})
		if err != nil {
			return fmt.Errorf("check account: %w", err)
		}
		if !empty {
			return importer.ErrAccountNotEmpty
		}
		if err := x.buckets(ctx, buckets); err != nil {
			return fmt.Errorf("restore buckets: %w", err)
		}
		err = x.q.BeginRestore(ctx, db.BeginRestoreParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Platform: importer.ArchivePlatform, Total: int64(conversations),
		})
		if err != nil {
			return err
		}
		return x.setProgress(ctx, x.done)
	})
	if err != nil {
		return importer.Progress{}, fmt.Errorf("begin restore: %w", err)
	}
	return done, nil
}

// buckets creates the buckets and replaces the empty default bucket.
func (x *restoring) buckets(ctx context.Context, list []account.Bucket) error {
	if len(list) == 0 {
		return nil
	}
	err := x.q.DeleteDefaultBucket(ctx, db.DeleteDefaultBucketParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)})
	if err != nil {
		return err
	}
	p := db.RestoreBucketsParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)}
	taken := make(map[string]bool, len(list))
	for _, b := range list {
		key := memory.BucketNameKey(b.Name)
		if taken[key] { // distinct by the rules of the version that exported it
			b.Name = fmt.Sprintf("%s (%d)", b.Name, b.ID)
			key = memory.BucketNameKey(b.Name)
		}
		taken[key] = true
		p.Ids, p.Names, p.NameKeys = append(p.Ids, b.ID), append(p.Names, b.Name), append(p.NameKeys, key)
		p.Descriptions, p.Defaults = append(p.Descriptions, b.Description), append(p.Defaults, b.Default)
		p.Times = append(p.Times, b.CreatedAt)
	}
	if err := x.q.RestoreBuckets(ctx, p); err != nil {
		return err
	}
	appendAudit(ctx, x.q, x.run.Scope, audit.BucketCreate, collect(p.Ids, bucketID)...)
	return nil
}

// Memories implements importer.Restorer.
func (i Imports) Memories(ctx context.Context, run importer.Run, done importer.Progress, batch []importer.RestoredMemory) (importer.Progress, error) {
	next := done
	next.Memories += len(batch)
	err := i.restoreStep(ctx, run, func(x *restoring) error {
		if x.done != done {
			return importer.ErrLeaseLost
		}
		if err := x.memories(ctx, batch); err != nil {
			return err
		}
		return x.setProgress(ctx, next)
	})
	if err != nil {
		return done, err
	}
	return next, nil
}

// SetProgress implements importer.Restorer.
func (i Imports) SetProgress(ctx context.Context, run importer.Run, done, next importer.Progress) error {
	return i.restoreStep(ctx, run, func(x *restoring) error {
		if x.done != done {
			return importer.ErrLeaseLost
		}
		return x.setProgress(ctx, next)
	})
}

// memories stores memories with their versions and units.
func (x *restoring) memories(ctx context.Context, batch []importer.RestoredMemory) error {
	bucketOf, err := x.bucketOf(ctx)
	if err != nil {
		return err
	}
	p := db.RestoreMemoriesParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)}
	for _, m := range batch {
		p.Ids, p.Buckets = append(p.Ids, m.ID), append(p.Buckets, bucketOf(m.Bucket))
		p.Texts, p.Tokens = append(p.Texts, m.Text), append(p.Tokens, integer(m.Tokens))
		p.Sources, p.Versions = append(p.Sources, m.Source), append(p.Versions, integer(m.Version))
		p.Created, p.Updated = append(p.Created, m.CreatedAt), append(p.Updated, m.UpdatedAt)
		p.SupersededBy, p.SupersededAt = append(p.SupersededBy, m.SupersededBy), append(p.SupersededAt, m.SupersededAt)
		if err := addAttributes(&p, memoryAttributes(m)); err != nil {
			return err
		}
	}
	ids, err := x.q.RestoreMemories(ctx, p)
	if err != nil {
		return fmt.Errorf("write memories: %w", err)
	}
	isNew := make(map[string]bool, len(ids))
	for _, id := range ids {
		isNew[id] = true
	}
	v := db.RestoreVersionsParams{TenantID: p.TenantID, UserID: p.UserID}
	u := db.RestoreMemoryUnitsParams{TenantID: p.TenantID, UserID: p.UserID}
	deltas, bytes := map[int64]int64{}, int64(0)
	for _, m := range batch {
		if !isNew[m.ID] { // a duplicate in the file
			continue
		}
		isNew[m.ID] = false
		bucket := bucketOf(m.Bucket)
		deltas[bucket]++
		for _, e := range append(m.Earlier, account.Version{Version: m.Version, Text: m.Text, CreatedAt: m.EditedAt}) {
			v.MemoryIds, v.Versions = append(v.MemoryIds, m.ID), append(v.Versions, integer(e.Version))
			v.Texts, v.Times = append(v.Texts, e.Text), append(v.Times, e.CreatedAt)
			bytes += int64(len(e.Text))
		}
		bytes += int64(memoryAttributes(m).Size())
		for _, unit := range m.Units {
			u.MemoryIds, u.Groups = append(u.MemoryIds, m.ID), append(u.Groups, bucket)
			u.Starts, u.Ends = append(u.Starts, integer(unit.Start)), append(u.Ends, integer(unit.End))
			u.Lexicals = append(u.Lexicals, indexedWords(unit.Lexical))
		}
	}
	if err := x.addMemories(ctx, v, u, deltas, bytes); err != nil || len(ids) == 0 {
		return err
	}
	if err := x.merge(ctx, batch, ids); err != nil {
		return err
	}
	appendAudit(ctx, x.q, x.run.Scope, audit.MemoryRestore, ids...)
	return nil
}

// merge moves those of the new memories that the export has as merged to merged_memories. One that does not come after
// the memory that was kept stays a memory.
func (x *restoring) merge(ctx context.Context, batch []importer.RestoredMemory, added []string) error {
	levels, err := x.mergeLevels(ctx, batch)
	if err != nil {
		return err
	}
	p := db.RestoreMergedMemoriesParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)}
	later := map[string]bool{}
	for _, m := range batch {
		later[m.ID] = true
	}
	for _, m := range batch {
		isNew := later[m.ID] && slices.Contains(added, m.ID)
		if isNew && m.MergedInto != "" && !later[m.MergedInto] {
			p.Ids, p.MergedInto = append(p.Ids, m.ID), append(p.MergedInto, levels.add(m.ID, m.MergedInto))
			p.MergedAt = append(p.MergedAt, m.MergedAt)
		}
		delete(later, m.ID)
	}
	if len(p.Ids) == 0 {
		return nil
	}
	ids, err := x.q.RestoreMergedMemories(ctx, p)
	if err != nil {
		return fmt.Errorf("write merged memories: %w", err)
	}
	_, err = removeMerged(ctx, x.q, x.run.Scope, ids)
	return err
}

// mergeLevel is the place of a merged memory in a chain of merges.
type mergeLevel struct {
	parent string
	level  int // from 1
}

type mergeLevels map[string]mergeLevel

// add adds a memory that was merged into kept, and returns the memory into which it is restored: one above kept if the
// chain would be deeper than memory.MaxMergeDepth, which no account can have.
func (l mergeLevels) add(id, kept string) string {
	above := l[kept]
	if above.level == memory.MaxMergeDepth {
		kept = above.parent
		above.level--
	}
	l[id] = mergeLevel{parent: kept, level: above.level + 1}
	return kept
}

// mergeLevels returns the levels of the memories of earlier batches into which those of the batch were merged.
func (x *restoring) mergeLevels(ctx context.Context, batch []importer.RestoredMemory) (mergeLevels, error) {
	out := mergeLevels{}
	p := db.MergeLevelsParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User), Most: memory.MaxMergeDepth}
	for _, m := range batch {
		if m.MergedInto != "" {
			p.Ids = append(p.Ids, m.MergedInto)
		}
	}
	if len(p.Ids) == 0 {
		return out, nil
	}
	rows, err := x.q.MergeLevels(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("read merges: %w", err)
	}
	for _, r := range rows {
		out[r.ID] = mergeLevel{r.Parent, int(r.Level)}
	}
	return out, nil
}

func memoryAttributes(m importer.RestoredMemory) memory.Attributes {
	return memory.Attributes{AgentID: m.AgentID, RunID: m.RunID, Tags: m.Tags, Metadata: m.Metadata}
}

// addAttributes adds the attributes of the next memory.
func addAttributes(p *db.RestoreMemoriesParams, a memory.Attributes) error {
	tags, err := json.Marshal(orEmpty(a.Tags))
	if err != nil {
		return fmt.Errorf("encode tags: %w", err)
	}
	p.AgentIds, p.RunIds = append(p.AgentIds, a.AgentID), append(p.RunIds, a.RunID)
	p.Tags, p.Metadata = append(p.Tags, string(tags)), append(p.Metadata, string(metadataColumn(a.Metadata)))
	p.AttributeBytes = append(p.AttributeBytes, integer(a.Size()))
	return nil
}

// addMemories writes the versions and units of new memories and charges them.
func (x *restoring) addMemories(
	ctx context.Context, v db.RestoreVersionsParams, u db.RestoreMemoryUnitsParams, deltas map[int64]int64, bytes int64,
) error {
	if len(deltas) == 0 {
		return nil
	}
	x.q.Later().RestoreVersions(v)
	units, err := x.q.RestoreMemoryUnits(ctx, u)
	if err != nil {
		return fmt.Errorf("write units: %w", err)
	}
	n := int64(0)
	for _, d := range deltas {
		n += d
	}
	reserve(x.q, x.run.Scope, n, bytes, 0)
	addToBuckets(x.q, x.run.Scope, deltas)
	return x.db.insertSync(ctx, x.tx, x.q, x.run.Tenant, unitIDs(units))
}

// bucketOf returns a function that maps the bucket of a memory to itself, or to
// the default bucket if it has been deleted since Begin.
func (x *restoring) bucketOf(ctx context.Context) (func(int64) int64, error) {
	ids, err := x.q.UserBuckets(ctx, db.UserBucketsParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)})
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	if len(ids) == 0 {
		return nil, memory.ErrBucketsChanging
	}
	known := make(map[int64]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	return func(id int64) int64 {
		if known[id] {
			return id
		}
		return ids[0]
	}, nil
}

// Activate implements importer.Restorer.
func (i Imports) Activate(ctx context.Context, run importer.Run, ids []string) (bool, error) {
	var quotaLeft bool
	err := i.restoreStep(ctx, run, func(x *restoring) error {
		left, err := x.q.ConversationQuotaLeft(ctx, db.ConversationQuotaLeftParams{TenantID: string(run.Tenant), UserID: int64(run.User)})
		if err != nil {
			return fmt.Errorf("read quota: %w", err)
		}
		blocked, err := x.q.BlockedOfImport(ctx, db.BlockedOfImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID, Ids: ids,
		})
		if err != nil {
			return fmt.Errorf("list blocked conversations: %w", err)
		}
		fitting := blocked[:max(0, min(int64(len(blocked)), left))]
		quotaLeft = left > int64(len(fitting))
		list := collect(fitting, func(id string) transition { return activate(int64(run.User), id) })
		_, err = x.db.setStatus(ctx, x.tx, x.q, run.Tenant, list)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("activate conversations: %w", err)
	}
	return quotaLeft, nil
}
