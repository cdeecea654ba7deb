package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// purgeBatch is the number of conversations or memories that a purge deletes
// per transaction, with their messages and units.
const purgeBatch = 200

// Retire implements tenant.Store.
func (d *DB) Retire(ctx context.Context, resource tenant.ID, policy tenant.DeletionPolicy) (tenant.Remaining, error) {
	var out tenant.Remaining
	state := "retained"
	if policy == tenant.Delete {
		state = "purging"
	}
	// The rows are counted in the scope of the tenant, which is known only now.
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		out = tenant.Remaining{}
		row, err := q.RetireTenant(ctx, db.RetireTenantParams{
			Resource: string(resource), State: state, DeletionPolicy: string(policy),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := q.RevokeTenantTokens(ctx, row.ID); err != nil {
			return err
		}
		if err := endAccess(ctx, q, row.ID); err != nil {
			return err
		}
		if _, err := applyDomains(ctx, q, row.ID, tenant.OIDC{}); err != nil {
			return err
		}
		if err := q.NotifyTenant(ctx, row.ID); err != nil {
			return err
		}
		if row.State != "purging" {
			return nil
		}
		if err := q.SetScope(ctx, db.SetScopeParams{Tenant: row.ID, UserID: allUsers}); err != nil {
			return err
		}
		left, err := q.CountRemaining(ctx, row.ID)
		if err != nil {
			return err
		}
		// The partition is dropped with the tenant's row, at the end of the
		// purge.
		out = tenant.Remaining{Memories: left.Memories, Conversations: left.Conversations, Partition: true}
		return d.insertPurge(ctx, tx, tenant.ID(row.ID))
	})
	if err != nil {
		return tenant.Remaining{}, fmt.Errorf("retire tenant: %w", err)
	}
	return out, nil
}

// Purge deletes all data of a tenant in state Purging, in batches, and its row
// last. It is idempotent and does nothing for other tenants.
func (d *DB) Purge(ctx context.Context, id tenant.ID) error {
	for {
		var removed int64
		err := d.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
			purging, err := q.LockPurging(ctx, string(id))
			if err != nil || len(purging) == 0 {
				removed = 0
				return err
			}
			p := db.PurgeConversationsParams{TenantID: string(id), Batch: purgeBatch}
			removed, err = q.PurgeConversations(ctx, p)
			if err != nil || removed > 0 {
				return err
			}
			removed, err = q.PurgeMemories(ctx, db.PurgeMemoriesParams(p))
			if err != nil || removed > 0 {
				return err
			}
			if err := d.dropLocations(ctx, tx, q, id); err != nil {
				return err
			}
			return deletePurged(ctx, q, id)
		})
		if err != nil {
			return fmt.Errorf("purge tenant: %w", err)
		}
		if removed == 0 {
			return nil
		}
	}
}

// deletePurged deletes the row of a tenant without remaining data and notifies
// the operator, whose Tenant waits for it.
func deletePurged(ctx context.Context, q *db.Queries, id tenant.ID) error {
	resources, err := q.DeletePurgedTenant(ctx, string(id))
	if err != nil {
		return err
	}
	for _, resource := range resources {
		if err := q.NotifyOperator(ctx, resource); err != nil {
			return err
		}
	}
	return nil
}

// dropLocations commits the jobs that drop the tenant's locations. The operator
// drops only the one in the Tenant's status, which may be outdated, and jobs may
// still write to a shared collection.
func (d *DB) dropLocations(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID) error {
	s, err := readPlacement(ctx, q, id)
	if err != nil || !s.Assigned() {
		return err
	}
	if s.Migrating() {
		if err := d.insertDrop(ctx, tx, s.Migration.Target.Location); err != nil {
			return err
		}
	}
	return d.insertDrop(ctx, tx, s.Current.Location)
}
