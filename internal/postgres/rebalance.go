package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Rebalance activates and blocks conversations of a tenant until they match its
// quota, in several transactions. It is idempotent, and does nothing for a
// tenant that no longer exists.
func (d *DB) Rebalance(ctx context.Context, id tenant.ID) error {
	for total := 0; ; {
		var changed int
		err := d.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
			if _, err := q.LockUsage(ctx, string(id)); err != nil {
				return fmt.Errorf("lock usage: %w", orUnknown(err, id))
			}
			var err error
			changed, err = d.rebalance(ctx, tx, q, tenant.JobScope(id, tenant.NoUser))
			if total += changed; err != nil || total == 0 || changed > 0 {
				return err
			}
			return q.NotifyOperator(ctx, string(id)) // which reports the usage
		})
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || changed == 0 {
			return err
		}
	}
}

// rebalanceOrEnqueue re-balances one batch after a change of a user's conversations, and commits a job for the rest.
func (d *DB) rebalanceOrEnqueue(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope) error {
	n, err := d.rebalance(ctx, tx, q, scope)
	if err != nil || n < rebalanceBatch {
		return err
	}
	return d.insertJob(ctx, tx, queue.Backlog, tenant.RebalanceArgs{Tenant: scope.Tenant})
}

// rebalance activates or blocks one batch of the tenant's conversations and
// returns their number: 0 if they match the quota. Only the user of the scope, or any
// user if it has none, can be over the quota of a user: a lower quota commits a job. The
// transaction holds the lock of the usage row, and may have the scope of a single user.
func (d *DB) rebalance(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope) (int, error) {
	b, err := getBalance(ctx, q, scope)
	if err != nil || b.matches(scope) {
		return 0, err
	}
	// The quota is the tenant's: widen the scope to all its users meanwhile.
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: string(scope.Tenant), UserID: allUsers}); err != nil {
		return 0, fmt.Errorf("widen scope: %w", err)
	}
	changed, err := d.blockOverUserQuota(ctx, tx, q, scope, b)
	if err == nil && changed < rebalanceBatch {
		b.Active -= int64(changed)
		var n int
		n, err = d.matchTenantQuota(ctx, tx, q, scope, b)
		changed += n
	}
	if err != nil {
		return 0, fmt.Errorf("re-balance conversations: %w", err)
	}
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: string(scope.Tenant), UserID: b.Scope}); err != nil {
		return 0, fmt.Errorf("narrow scope: %w", err)
	}
	return changed, nil
}

// balance compares the conversations of a tenant, and of a user, with their quotas.
type balance db.GetBalanceRow

func getBalance(ctx context.Context, q *db.Queries, scope tenant.Scope) (balance, error) {
	row, err := q.GetBalance(ctx, db.GetBalanceParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return balance{}, fmt.Errorf("read quota: %w", orUnknown(err, scope.Tenant))
	}
	return balance(row), nil
}

// stateOfNew returns the state of a new conversation of the user. If neither quota is reached, the user has no blocked
// conversation that would be activated first, except while a job re-balances the tenant.
func (b balance) stateOfNew() chat.Status {
	if b.Active < b.Hard && b.ActiveOfUser < b.UserHard {
		return chat.Active
	}
	return chat.Blocked
}

// matches reports whether there is nothing to activate or to block.
func (b balance) matches(scope tenant.Scope) bool {
	over := b.ActiveOfUser > b.UserHard
	if scope.User == tenant.NoUser {
		over = b.UserHard < tenant.NoLimit // may be
	}
	return !over && b.Active <= b.Hard && (b.Active == b.Hard || b.Blocked == 0)
}

// blockOverUserQuota blocks a batch of the oldest active conversations of the user, or of all users, over the quota of a user.
func (d *DB) blockOverUserQuota(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, b balance) (int, error) {
	list, err := overUserQuota(ctx, q, scope, b)
	if err != nil {
		return 0, err
	}
	return d.setStatus(ctx, tx, q, scope.Tenant, list)
}

// matchTenantQuota activates or blocks a batch of conversations, as chat.Rebalance decides, of users within their own quota.
func (d *DB) matchTenantQuota(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, b balance) (int, error) {
	var list []transition
	id := string(scope.Tenant)
	switch n := chat.Rebalance(b.Active, b.Hard, rebalanceBatch); {
	case n < 0:
		rows, err := q.OldestActive(ctx, db.OldestActiveParams{TenantID: id, Batch: integer(-n)})
		if err != nil {
			return 0, err
		}
		list = collect(rows, func(r db.OldestActiveRow) transition { return block(r.UserID, r.ID) })
	case n > 0 && b.Blocked > 0:
		rows, err := q.NewestBlocked(ctx, db.NewestBlockedParams{TenantID: id, Hard: b.UserHard, Batch: integer(n)})
		if err != nil {
			return 0, err
		}
		list = collect(rows, func(r db.NewestBlockedRow) transition { return activate(r.UserID, r.ID) })
	}
	return d.setStatus(ctx, tx, q, scope.Tenant, list)
}

// overUserQuota returns a batch of the oldest active conversations of the user, or of all users, over the quota of a user.
func overUserQuota(ctx context.Context, q *db.Queries, scope tenant.Scope, b balance) ([]transition, error) {
	switch {
	case scope.User == tenant.NoUser && b.UserHard < tenant.NoLimit:
		rows, err := q.OverUserQuota(ctx, db.OverUserQuotaParams{TenantID: string(scope.Tenant), Hard: b.UserHard, Batch: rebalanceBatch})
		return collect(rows, func(r db.OverUserQuotaRow) transition { return block(r.UserID, r.ID) }), err
	case b.ActiveOfUser > b.UserHard:
		ids, err := q.OldestActiveOfUser(ctx, db.OldestActiveOfUserParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Batch: integer(int(min(b.ActiveOfUser-b.UserHard, rebalanceBatch))),
		})
		return collect(ids, func(id string) transition { return block(int64(scope.User), id) }), err
	}
	return nil, nil
}

func activate(user int64, id string) transition {
	return transition{user: user, id: id, before: chat.Blocked, after: chat.Active}
}

func block(user int64, id string) transition {
	return transition{user: user, id: id, before: chat.Active, after: chat.Blocked}
}
