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

// cause is why conversations are re-balanced. It bounds the conversations that may be activated or blocked.
type cause int

const (
	// userChange is a change of one user's conversations. Only those of the user may be over the user's quota, or become active.
	userChange cause = iota
	// freedQuota is userChange with the tenant's quota reached before the change: conversations of all users may become active.
	freedQuota
	// quotaChange is a change of the quotas: in addition, all users may be over their own.
	quotaChange
)

// Rebalance activates and blocks conversations of a tenant until they match its
// quota, in several transactions. It is idempotent, and does nothing for a
// tenant that no longer exists.
func (d *DB) Rebalance(ctx context.Context, id tenant.ID) error {
	return d.rebalanceAll(ctx, tenant.JobScope(id, tenant.NoUser), quotaChange)
}

// rebalanceAll re-balances in several transactions, like Rebalance.
func (d *DB) rebalanceAll(ctx context.Context, scope tenant.Scope, why cause) error {
	for total := 0; ; {
		var changed int
		err := d.inTenant(ctx, scope.Tenant, func(tx pgx.Tx, q *db.Queries) error {
			if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
				return fmt.Errorf("lock usage: %w", orUnknown(err, scope.Tenant))
			}
			b, err := getBalance(ctx, q, scope)
			if err != nil {
				return err
			}
			changed, err = d.rebalance(ctx, tx, q, scope, b, why)
			if total += changed; err != nil || total == 0 || changed > 0 {
				return err
			}
			return q.NotifyOperator(ctx, string(scope.Tenant)) // which reports the usage
		})
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || changed == 0 {
			return err
		}
	}
}

// rebalanceOrEnqueue re-balances one batch after a change of a user's conversations, and commits a job for the rest. freed is by how
// many conversations the change reduced the active ones.
func (d *DB) rebalanceOrEnqueue(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, freed int64) error {
	b, err := getBalance(ctx, q, scope)
	if err != nil {
		return err
	}
	n, err := d.rebalance(ctx, tx, q, scope, b, b.causeOf(freed))
	if err != nil || n < rebalanceBatch {
		return err
	}
	return d.insertJob(ctx, tx, queue.Backlog, tenant.RebalanceArgs{Tenant: scope.Tenant})
}

// rebalance activates or blocks one batch of the tenant's conversations and
// returns their number: 0 if they match the quota. The transaction holds the lock of
// the usage row, and may have the scope of a single user.
func (d *DB) rebalance(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, b balance, why cause) (int, error) {
	if b.matches(why) {
		return 0, nil
	}
	// The quota is the tenant's: widen the scope to all its users meanwhile.
	q.Later().SetScope(db.SetScopeParams{Tenant: string(scope.Tenant), UserID: allUsers})
	changed, err := d.blockOverUserQuota(ctx, tx, q, scope, b, why)
	if err == nil && changed < rebalanceBatch {
		b.Active, b.ActiveOfUser = b.Active-int64(changed), min(b.ActiveOfUser, b.UserHard)
		var n int
		n, err = d.matchTenantQuota(ctx, tx, q, scope, b, why)
		changed += n
	}
	if err != nil {
		return 0, fmt.Errorf("re-balance conversations: %w", err)
	}
	q.Later().SetScope(db.SetScopeParams{Tenant: string(scope.Tenant), UserID: b.Scope})
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

// causeOf returns the cause of a re-balance after a change that reduced the active conversations of a user. Below the tenant's quota,
// no blocked conversation of another user could become active before the change, nor can it after the change.
func (b balance) causeOf(freed int64) cause {
	if freed > 0 && b.Active+freed >= b.Hard {
		return freedQuota
	}
	return userChange
}

// matches reports whether there is nothing to activate or to block.
func (b balance) matches(why cause) bool {
	over := b.ActiveOfUser > b.UserHard || why == quotaChange && b.UserHard < tenant.NoLimit // of any user, perhaps
	return !over && b.Active <= b.Hard && (b.toActivate(why) == 0 || b.Blocked == 0)
}

// toActivate returns the number of blocked conversations, up to a batch, that the quotas allow to activate. If the tenant's quota is exceeded, it
// is negative, and the number of those to block.
func (b balance) toActivate(why cause) int {
	n := chat.Rebalance(b.Active, b.Hard, rebalanceBatch)
	if why == userChange {
		n = min(n, chat.Rebalance(b.ActiveOfUser, b.UserHard, rebalanceBatch))
	}
	return n
}

// blockOverUserQuota blocks a batch of the oldest active conversations of the user, or of all users, over the quota of a user.
func (d *DB) blockOverUserQuota(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, b balance, why cause) (int, error) {
	var list []transition
	switch {
	case why == quotaChange && b.UserHard < tenant.NoLimit:
		rows, err := q.OverUserQuota(ctx, db.OverUserQuotaParams{TenantID: string(scope.Tenant), Hard: b.UserHard, Batch: rebalanceBatch})
		if err != nil {
			return 0, err
		}
		list = collect(rows, func(r db.OverUserQuotaRow) transition { return block(r.UserID, r.ID) })
	case b.ActiveOfUser > b.UserHard:
		ids, err := q.OldestActiveOfUser(ctx, db.OldestActiveOfUserParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Batch: integer(int(min(b.ActiveOfUser-b.UserHard, rebalanceBatch))),
		})
		if err != nil {
			return 0, err
		}
		list = collect(ids, func(id string) transition { return block(int64(scope.User), id) })
	}
	return d.setStatus(ctx, tx, q, scope.Tenant, list)
}

// matchTenantQuota activates or blocks a batch of conversations of users within their own quota.
func (d *DB) matchTenantQuota(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, b balance, why cause) (int, error) {
	var list []transition
	id := string(scope.Tenant)
	switch n := b.toActivate(why); {
	case n < 0:
		rows, err := q.OldestActive(ctx, db.OldestActiveParams{TenantID: id, Batch: integer(-n)})
		if err != nil {
			return 0, err
		}
		list = collect(rows, func(r db.OldestActiveRow) transition { return block(r.UserID, r.ID) })
	case n == 0 || b.Blocked == 0:
	case why == userChange:
		ids, err := q.NewestBlockedOfUser(ctx, db.NewestBlockedOfUserParams{TenantID: id, UserID: int64(scope.User), Batch: integer(n)})
		if err != nil {
			return 0, err
		}
		list = collect(ids, func(id string) transition { return activate(int64(scope.User), id) })
	default:
		rows, err := q.NewestBlocked(ctx, db.NewestBlockedParams{TenantID: id, Hard: b.UserHard, Batch: integer(n)})
		if err != nil {
			return 0, err
		}
		list = collect(rows, func(r db.NewestBlockedRow) transition { return activate(r.UserID, r.ID) })
	}
	return d.setStatus(ctx, tx, q, scope.Tenant, list)
}

func activate(user int64, id string) transition {
	return transition{user: user, id: id, before: chat.Blocked, after: chat.Active}
}

func block(user int64, id string) transition {
	return transition{user: user, id: id, before: chat.Active, after: chat.Blocked}
}
