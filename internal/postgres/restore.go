package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
)

// Restores is the database as restores of accounts use it.
type Restores struct{ *DB }

var _ account.Restorer = Restores{}

// Restores returns the store that accounts are put back into.
func (d *DB) Restores() Restores { return Restores{d} }

// restoring is a step of a restore in a transaction that holds the rows of
// the import and, behind it, of the usage: as a deletion of the account does.
type restoring struct {
	db    *DB
	tx    pgx.Tx
	q     *db.Queries
	run   chat.ImportRun
	begun bool // an earlier step did something
	done  account.Progress
}

// step does a step, if the import is the worker's.
func (r Restores) step(ctx context.Context, run chat.ImportRun, do func(*restoring) error) error {
	return r.inScope(ctx, run.Scope, func(tx pgx.Tx, q *db.Queries) error {
		row, err := q.LockRestore(ctx, db.LockRestoreParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return chat.ErrLost
		}
		if err != nil {
			return fmt.Errorf("lock import: %w", err)
		}
		if _, err := q.LockUsage(ctx, string(run.Tenant)); err != nil {
			return orUnknown(err, run.Tenant)
		}
		x := &restoring{db: r.DB, tx: tx, q: q, run: run, begun: row.Platform == account.Platform}
		if x.begun {
			if err := json.Unmarshal(row.Notes, &x.done); err != nil {
				return fmt.Errorf("read notes: %w", err)
			}
		}
		return do(x)
	})
}

// keep keeps how far it is.
func (x *restoring) keep(ctx context.Context) error {
	notes, err := json.Marshal(x.done)
	if err != nil {
		return err
	}
	return x.q.NoteRestore(ctx, db.NoteRestoreParams{
		TenantID: string(x.run.Tenant), UserID: int64(x.run.User), ID: x.run.ID, Notes: notes, Lease: seconds(landLease),
	})
}

// Begin implements account.Restorer.
func (r Restores) Begin(ctx context.Context, run chat.ImportRun, buckets []account.Bucket, conversations int) (account.Progress, error) {
	var done account.Progress
	err := r.step(ctx, run, func(x *restoring) error {
		done = x.done
		if x.begun {
			return nil
		}
		empty, err := x.q.AccountIsEmpty(ctx, db.AccountIsEmptyParams{TenantID: string(run.Tenant), UserID: int64(run.User)})
		if err != nil {
			return fmt.Errorf("look whether the account is empty: %w", err)
		}
		if !empty {
			return account.ErrNotEmpty
		}
		if err := x.buckets(ctx, buckets); err != nil {
			return fmt.Errorf("restore buckets: %w", err)
		}
		err = x.q.BeginRestore(ctx, db.BeginRestoreParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Platform: account.Platform, Total: int64(conversations),
		})
		if err != nil {
			return err
		}
		return x.keep(ctx)
	})
	if err != nil {
		return account.Progress{}, fmt.Errorf("begin restore: %w", err)
	}
	return done, nil
}

// buckets makes the buckets in the place of the empty default one.
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
		if taken[key] { // told apart by less when it was made
			b.Name = fmt.Sprintf("%s (%d)", b.Name, b.ID)
			key = memory.BucketNameKey(b.Name)
		}
		taken[key] = true
		p.Ids, p.Names, p.NameKeys = append(p.Ids, b.ID), append(p.Names, b.Name), append(p.NameKeys, key)
		p.Descriptions, p.Defaults = append(p.Descriptions, b.Description), append(p.Defaults, b.Default)
		p.Times = append(p.Times, storedTime(b.CreatedAt))
	}
	return x.q.RestoreBuckets(ctx, p)
}

// Memories implements account.Restorer. When a batch does not fit a quota, its
// memories are stored one by one.
func (r Restores) Memories(ctx context.Context, run chat.ImportRun, done account.Progress, batch []account.RestoredMemory) (account.Progress, error) {
	out := done
	err := r.step(ctx, run, func(x *restoring) error {
		if x.done.Memories != done.Memories {
			return chat.ErrLost
		}
		if err := x.memories(ctx, batch); err != nil {
			return err
		}
		x.done.Memories += len(batch)
		out = x.done
		return x.keep(ctx)
	})
	if !fault.Is(err, fault.Forbidden) {
		return out, err
	}
	if len(batch) > 1 {
		for i := range batch {
			if done, err = r.Memories(ctx, run, done, batch[i:i+1]); err != nil {
				return done, err
			}
		}
		return done, nil
	}
	reason := messageOf(err)
	err = r.step(ctx, run, func(x *restoring) error {
		x.done.Memories++
		x.done.LeftOut++
		if x.done.LeftOut == 1 {
			x.done.Reason = reason
		}
		out = x.done
		return x.keep(ctx)
	})
	return out, err
}

// memories stores memories with their versions and units.
func (x *restoring) memories(ctx context.Context, batch []account.RestoredMemory) error {
	bucketOf, err := x.bucketOf(ctx)
	if err != nil {
		return err
	}
	p := db.RestoreMemoriesParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)}
	for _, m := range batch {
		p.Ids, p.Buckets = append(p.Ids, m.ID), append(p.Buckets, bucketOf(m.Bucket))
		p.Texts, p.Tokens = append(p.Texts, m.Text), append(p.Tokens, int32(m.Tokens))
		p.Sources, p.Versions = append(p.Sources, m.Source), append(p.Versions, int32(m.Version))
		p.Created, p.Updated = append(p.Created, storedTime(m.CreatedAt)), append(p.Updated, storedTime(m.UpdatedAt))
	}
	made, err := x.q.RestoreMemories(ctx, p)
	if err != nil {
		return fmt.Errorf("write memories: %w", err)
	}
	isMade := make(map[string]bool, len(made))
	for _, id := range made {
		isMade[id] = true
	}
	v := db.RestoreVersionsParams{TenantID: p.TenantID, UserID: p.UserID}
	u := db.RestoreMemoryUnitsParams{TenantID: p.TenantID, UserID: p.UserID}
	deltas, bytes := map[int64]int64{}, int64(0)
	for _, m := range batch {
		if !isMade[m.ID] { // the file has it twice
			continue
		}
		isMade[m.ID] = false
		bucket := bucketOf(m.Bucket)
		deltas[bucket]++
		for _, e := range append(m.Earlier, account.Version{Version: m.Version, Text: m.Text, CreatedAt: m.EditedAt}) {
			v.MemoryIds, v.Versions = append(v.MemoryIds, m.ID), append(v.Versions, int32(e.Version))
			v.Texts, v.Times = append(v.Texts, e.Text), append(v.Times, storedTime(e.CreatedAt))
			bytes += int64(len(e.Text))
		}
		for _, unit := range m.Units {
			u.MemoryIds, u.Groups = append(u.MemoryIds, m.ID), append(u.Groups, bucket)
			u.Starts, u.Ends = append(u.Starts, int32(unit.Start)), append(u.Ends, int32(unit.End))
			u.Lexicals = append(u.Lexicals, unit.Lexical)
		}
	}
	return x.countMemories(ctx, v, u, deltas, bytes)
}

// countMemories writes what belongs to new memories, and counts all of it.
func (x *restoring) countMemories(
	ctx context.Context, v db.RestoreVersionsParams, u db.RestoreMemoryUnitsParams, deltas map[int64]int64, bytes int64,
) error {
	if len(deltas) == 0 {
		return nil
	}
	if err := x.q.RestoreVersions(ctx, v); err != nil {
		return fmt.Errorf("write versions: %w", err)
	}
	units, err := x.q.RestoreMemoryUnits(ctx, u)
	if err != nil {
		return fmt.Errorf("write units: %w", err)
	}
	n := int64(0)
	for _, d := range deltas {
		n += d
	}
	if err := reserve(ctx, x.q, x.run.Scope, n, bytes); err != nil {
		return err
	}
	if err := addToBuckets(ctx, x.q, x.run.Scope, deltas); err != nil {
		return err
	}
	return x.db.insertSync(ctx, x.tx, x.run.Tenant, unitIDs(units))
}

// bucketOf returns what finds the bucket of a memory: the default one for one
// whose bucket was deleted meanwhile.
func (x *restoring) bucketOf(ctx context.Context) (func(int64) int64, error) {
	ids, err := x.q.UserBuckets(ctx, db.UserBucketsParams{TenantID: string(x.run.Tenant), UserID: int64(x.run.User)})
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	if len(ids) == 0 {
		return nil, fault.New(fault.Unavailable, "the account's buckets are being changed; it is tried again")
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

// Activate implements account.Restorer.
func (r Restores) Activate(ctx context.Context, run chat.ImportRun, ids []string) (bool, error) {
	var left bool
	err := r.step(ctx, run, func(x *restoring) error {
		room, err := x.q.ConversationRoom(ctx, db.ConversationRoomParams{TenantID: string(run.Tenant), UserID: int64(run.User)})
		if err != nil {
			return fmt.Errorf("look for room: %w", err)
		}
		waiting, err := x.q.WaitingConversations(ctx, db.WaitingConversationsParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID, Ids: ids,
		})
		if err != nil {
			return fmt.Errorf("list waiting conversations: %w", err)
		}
		list := collect(waiting[:max(0, min(int64(len(waiting)), room))], func(id string) placed { return placed{int64(run.User), id} })
		left = room > int64(len(list))
		_, err = x.db.setActive(ctx, x.tx, x.q, run.Tenant, true, list)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("activate conversations: %w", err)
	}
	return left, nil
}
