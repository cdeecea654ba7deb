package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// rebalanceBatch is the number of conversations that a transaction activates or
// blocks.
const rebalanceBatch = 100

// SetFlags implements chat.Store.
func (c Conversations) SetFlags(ctx context.Context, scope tenant.Scope, ids []string, f chat.Flags) ([]string, error) {
	var out []string
	err := c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		out = nil
		// See conversationWriter for the lock order.
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		changed := 0
		var counts chat.StatusCounts
		for batch := range slices.Chunk(parseIDs(ids), deleteBatch) {
			rows, err := q.LockConversationStates(ctx, db.LockConversationStatesParams{
				TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: batch,
			})
			if err != nil {
				return fmt.Errorf("lock conversations: %w", err)
			}
			list := make([]transition, len(rows))
			for i, r := range rows {
				out = append(out, r.ID)
				before := chat.Status(r.Status)
				list[i] = transition{user: int64(scope.User), id: r.ID, before: before, after: f.Apply(before)}
				counts.Move(before, list[i].after)
			}
			if f.Pinned != nil {
				q.Later().PinConversations(db.PinConversationsParams{
					TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: batch, Pinned: *f.Pinned,
				})
			}
			n, err := c.DB.setStatus(ctx, tx, q, scope.Tenant, list)
			if err != nil {
				return err
			}
			changed += n
		}
		if len(out) == 0 {
			return nil
		}
		appendAudit(ctx, q, scope, audit.ConversationUpdate, out...)
		if changed == 0 {
			return nil
		}
		return c.DB.rebalanceOrEnqueue(ctx, tx, q, scope, -counts.Active)
	})
	if err != nil {
		return nil, fmt.Errorf("set flags: %w", err)
	}
	return out, nil
}

// transition is a change of a conversation's state.
type transition struct {
	user          int64
	id            string
	before, after chat.Status
}

// setStatus applies transitions with their units, counters and index jobs, and
// returns how many of them change a state. The transaction must hold the lock of
// the usage row.
func (d *DB) setStatus(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, list []transition) (int, error) {
	groups := map[chat.Status]*db.SetConversationStatusParams{}
	units := map[bool]*db.SetUnitsActiveParams{}
	changed := 0
	for _, t := range list {
		if t.before == t.after {
			continue
		}
		changed++
		g := getOrNew(groups, t.after)
		g.Users, g.Ids = append(g.Users, t.user), append(g.Ids, t.id)
		if t.before.Searched() || t.after.Searched() {
			u := getOrNew(units, t.after.Searched())
			u.Users, u.Ids = append(u.Users, t.user), append(u.Ids, t.id)
		}
	}
	for status, p := range groups {
		p.TenantID, p.Status = string(id), string(status)
		q.Later().SetConversationStatus(*p)
	}
	countTransitions(q, id, list)
	for active, p := range units {
		p.TenantID, p.Active = string(id), active
		ids, err := q.SetUnitsActive(ctx, *p)
		if err != nil {
			return 0, fmt.Errorf("set units active: %w", err)
		}
		if err := d.insertSync(ctx, tx, q, id, unitIDs(ids)); err != nil {
			return 0, err
		}
	}
	return changed, nil
}

// countTransitions updates the conversation counters of the tenant and its users.
func countTransitions(q *db.Queries, id tenant.ID, list []transition) {
	var total chat.StatusCounts
	perUser := map[int64]*chat.StatusCounts{}
	for _, t := range list {
		total.Move(t.before, t.after)
		getOrNew(perUser, t.user).Move(t.before, t.after)
	}
	if total != (chat.StatusCounts{}) {
		q.Later().AddConversationUsage(db.AddConversationUsageParams{TenantID: string(id), Active: total.Active, Blocked: total.Blocked})
	}
	for user, c := range perUser {
		if c.Active != 0 {
			q.Later().AddUserConversations(db.AddUserConversationsParams{TenantID: string(id), UserID: user, Active: c.Active})
		}
	}
}

func getOrNew[K comparable, V any](m map[K]*V, k K) *V {
	if m[k] == nil {
		m[k] = new(V)
	}
	return m[k]
}

// addConversations adds to the conversation counters of a user and the tenant.
func addConversations(q *db.Queries, scope tenant.Scope, c chat.StatusCounts) {
	if c == (chat.StatusCounts{}) {
		return
	}
	q.Later().AddConversationUsage(db.AddConversationUsageParams{TenantID: string(scope.Tenant), Active: c.Active, Blocked: c.Blocked})
	if c.Active != 0 {
		q.Later().AddUserConversations(db.AddUserConversationsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Active: c.Active,
		})
	}
}
