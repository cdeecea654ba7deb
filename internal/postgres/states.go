package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ chat.StateStore = Conversations{}

// Mark implements chat.StateStore. More than a transaction's worth of room is
// granted by a job, as after a deletion.
func (c Conversations) Mark(ctx context.Context, scope tenant.Scope, ids []string, m chat.Marks) ([]string, error) {
	var out []string
	err := c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		out = nil
		// Before the conversations, as every writer does.
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		x := marking{db: c.DB, tx: tx, q: q, scope: scope}
		moved := false
		for batch := range slices.Chunk(parseIDs(ids), deleteBatch) {
			found, err := q.ResolveConversations(ctx, db.ResolveConversationsParams{
				TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: batch,
			})
			if err != nil {
				return err
			}
			out = append(out, found...)
			changed, err := x.run(ctx, found, m)
			if err != nil {
				return err
			}
			moved = moved || changed
		}
		if !moved {
			return nil
		}
		return c.DB.grantRoom(ctx, tx, q, scope.Tenant)
	})
	if err != nil {
		return nil, fmt.Errorf("mark conversations: %w", err)
	}
	return out, nil
}

// marking is conversations of one user being marked in a transaction that
// holds the usage row's lock.
type marking struct {
	db    *DB
	tx    pgx.Tx
	q     *db.Queries
	scope tenant.Scope
}

// run marks a batch and reports whether any of it changed its state.
func (x marking) run(ctx context.Context, ids []string, m chat.Marks) (bool, error) {
	if m.Pinned != nil {
		err := x.q.PinConversations(ctx, db.PinConversationsParams{
			TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), Ids: ids, Pinned: *m.Pinned,
		})
		if err != nil {
			return false, fmt.Errorf("pin: %w", err)
		}
	}
	switch {
	case m.Excluded == nil:
		return false, nil
	case *m.Excluded:
		return x.exclude(ctx, ids)
	}
	return x.include(ctx, ids)
}

// exclude takes conversations and their units out, and commits the job that
// takes the units out of the index.
func (x marking) exclude(ctx context.Context, ids []string) (bool, error) {
	p := db.ExcludeConversationsParams{TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), Ids: ids}
	rows, err := x.q.ExcludeConversations(ctx, p)
	if err != nil {
		return false, fmt.Errorf("exclude: %w", err)
	}
	var held freed
	var active []string
	for _, r := range rows {
		if chat.Status(r.Before) == chat.Active {
			held.active++
			active = append(active, r.ID)
		} else {
			held.blocked++
		}
	}
	if len(rows) == 0 {
		return false, nil
	}
	if err := held.release(ctx, x.q, x.scope); err != nil {
		return false, fmt.Errorf("release room: %w", err)
	}
	if len(active) == 0 {
		return true, nil
	}
	units, err := x.q.SetUnitsActive(ctx, db.SetUnitsActiveParams{
		TenantID: string(x.scope.Tenant), Users: slices.Repeat([]int64{int64(x.scope.User)}, len(active)), Ids: active, Active: false,
	})
	if err != nil {
		return false, fmt.Errorf("take units out: %w", err)
	}
	return true, x.db.insertSync(ctx, x.tx, x.scope.Tenant, unitIDs(units))
}

// include lets conversations wait for room again.
func (x marking) include(ctx context.Context, ids []string) (bool, error) {
	rows, err := x.q.IncludeConversations(ctx, db.IncludeConversationsParams{
		TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), Ids: ids,
	})
	if err != nil {
		return false, fmt.Errorf("include: %w", err)
	}
	if len(rows) == 0 {
		return false, nil
	}
	err = x.q.AddConversationUsage(ctx, db.AddConversationUsageParams{TenantID: string(x.scope.Tenant), Blocked: int64(len(rows))})
	if err != nil {
		return false, fmt.Errorf("count blocked: %w", err)
	}
	return true, nil
}
