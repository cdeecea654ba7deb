package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// rebalanceBatch is how many conversations one transaction grants room or
// takes it from.
const rebalanceBatch = 100

// reserve adds memories and bytes of storage (negative to free them) to what
// the tenant and the user hold; Forbidden when that would pass a quota. It
// locks the usage row, which every writer takes first.
func reserve(ctx context.Context, q *db.Queries, scope tenant.Scope, memories, storage int64) error {
	if memories == 0 && storage == 0 {
		return nil
	}
	n, err := q.ReserveUsage(ctx, db.ReserveUsageParams{TenantID: string(scope.Tenant), Memories: memories, Storage: storage})
	if err == nil && n > 0 && memories != 0 {
		n, err = q.ReserveUserMemories(ctx, db.ReserveUserMemoriesParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Memories: memories,
		})
	}
	if err != nil {
		return fmt.Errorf("reserve quota: %w", err)
	}
	if n > 0 {
		return nil
	}
	return usedUp(ctx, q, scope, memories, storage)
}

// help says what to do when a quota is used up.
const help = "delete some, or ask your host for more"

func storageUsedUp(hard, used int64) error {
	return fault.New(fault.Forbidden, "the storage quota of %d bytes is used up (%d used): %s", hard, used, help)
}

// usedUp says which quota was in the way.
func usedUp(ctx context.Context, q *db.Queries, scope tenant.Scope, memories, storage int64) error {
	row, err := q.UsageAndQuota(ctx, string(scope.Tenant))
	if err != nil {
		return fmt.Errorf("read quota: %w", orUnknown(err, scope.Tenant))
	}
	switch {
	case storage > 0 && row.Storage+storage > row.StorageHard:
		return storageUsedUp(row.StorageHard, row.Storage)
	case row.Memories+memories > row.MemoriesHard:
		return fault.New(fault.Forbidden, "the quota of %d memories is used up: %s", row.MemoriesHard, help)
	}
	return fault.New(fault.Forbidden, "your quota of %d memories is used up: %s", row.UserMemoriesHard, help)
}

// rebalance gives blocked conversations the room there is, newest first, or
// takes it from the oldest active ones when there is too little: of the
// tenant, and of each user. It changes at most a batch, commits the index jobs
// of what it changed, and reports how many it changed: 0 means all is as it
// should be. The caller's transaction is of the tenant.
func (d *DB) rebalance(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID) (int, error) {
	usage, err := q.LockUsage(ctx, string(id))
	if err != nil {
		return 0, fmt.Errorf("lock usage: %w", orUnknown(err, id))
	}
	quota, err := q.GetQuota(ctx, string(id))
	if err != nil {
		return 0, fmt.Errorf("read quota: %w", err)
	}
	// Room is the tenant's: for this, the transaction sees all its users.
	user, err := q.CurrentScopeUser(ctx)
	if err != nil {
		return 0, fmt.Errorf("read scope: %w", err)
	}
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: string(id), UserID: allUsers}); err != nil {
		return 0, fmt.Errorf("widen scope: %w", err)
	}
	changed, err := d.rebalanceOnce(ctx, tx, q, id, usage.Conversations, quota)
	if err != nil {
		return 0, fmt.Errorf("re-balance conversations: %w", err)
	}
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: string(id), UserID: user}); err != nil {
		return 0, fmt.Errorf("narrow scope: %w", err)
	}
	return changed, nil
}

// placed is a conversation with its user.
type placed struct {
	user int64
	id   string
}

func (d *DB) rebalanceOnce(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, used int64, quota db.Quota) (int, error) {
	over, err := q.OverUserQuota(ctx, db.OverUserQuotaParams{TenantID: string(id), Hard: quota.UserConversations, Batch: rebalanceBatch})
	if err != nil {
		return 0, err
	}
	if len(over) > 0 {
		return d.setActive(ctx, tx, q, id, false, collect(over, func(r db.OverUserQuotaRow) placed { return placed{r.UserID, r.ID} }))
	}
	if used > quota.Conversations {
		oldest, err := q.OldestActive(ctx, db.OldestActiveParams{TenantID: string(id), Batch: int32(min(used-quota.Conversations, rebalanceBatch))})
		if err != nil {
			return 0, err
		}
		return d.setActive(ctx, tx, q, id, false, collect(oldest, func(r db.OldestActiveRow) placed { return placed{r.UserID, r.ID} }))
	}
	if used == quota.Conversations {
		return 0, nil
	}
	newest, err := q.NewestBlocked(ctx, db.NewestBlockedParams{
		TenantID: string(id), Hard: quota.UserConversations, Batch: int32(min(quota.Conversations-used, rebalanceBatch)),
	})
	if err != nil {
		return 0, err
	}
	return d.setActive(ctx, tx, q, id, true, collect(newest, func(r db.NewestBlockedRow) placed { return placed{r.UserID, r.ID} }))
}

// setActive makes conversations active or blocked, with their units, counters
// and index jobs.
func (d *DB) setActive(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, active bool, list []placed) (int, error) {
	if len(list) == 0 {
		return 0, nil
	}
	status, sign := "blocked", int64(-1)
	if active {
		status, sign = "active", 1
	}
	users, ids, perUser := make([]int64, len(list)), make([]string, len(list)), map[int64]int64{}
	for i, c := range list {
		users[i], ids[i] = c.user, c.id
		perUser[c.user] += sign
	}
	if err := q.SetConversationStatus(ctx, db.SetConversationStatusParams{TenantID: string(id), Status: status, Users: users, Ids: ids}); err != nil {
		return 0, err
	}
	n := sign * int64(len(list))
	if err := q.AddConversationUsage(ctx, db.AddConversationUsageParams{TenantID: string(id), Active: n, Blocked: -n}); err != nil {
		return 0, err
	}
	for user, delta := range perUser {
		if err := q.AddUserConversations(ctx, db.AddUserConversationsParams{TenantID: string(id), UserID: user, Active: delta}); err != nil {
			return 0, err
		}
	}
	units, err := q.SetUnitsActive(ctx, db.SetUnitsActiveParams{TenantID: string(id), Users: users, Ids: ids, Active: active})
	if err != nil {
		return 0, err
	}
	return len(list), d.insertSync(ctx, tx, id, collect(units, func(u int64) retrieve.UnitID { return retrieve.UnitID(u) }))
}

// Rebalance gives a tenant's conversations the room its quota leaves them, in
// bounded transactions. It may be repeated; nothing is done for a tenant that
// is gone.
func (d *DB) Rebalance(ctx context.Context, id tenant.ID) error {
	for {
		var changed int
		err := d.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
			var err error
			changed, err = d.rebalance(ctx, tx, q, id)
			return err
		})
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || changed == 0 {
			return err
		}
	}
}

func collect[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}
