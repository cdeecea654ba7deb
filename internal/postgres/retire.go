package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// purgeBatch is the number of conversations or memories that a purge deletes
	// per transaction, with their messages and units.
	purgeBatch = 200
	// purgeUsersBatch is the number of users without data that a purge deletes per transaction.
	purgeUsersBatch = 2000
	// purgeImportsBatch is the number of imports that a purge deletes per transaction.
	purgeImportsBatch = 200
	// purgePartsBatch is the number of outcomes of imports, or of idempotency keys, that a purge deletes per transaction.
	purgePartsBatch = 2000
)

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
		if err := auditRetired(ctx, q, row); err != nil {
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
		if err := endDeclaredWebhooks(ctx, q, row.ID); err != nil || row.State != "purging" {
			return err
		}
		left, err := q.CountRemaining(ctx, row.ID)
		if err != nil {
			return err
		}
		state, err := readPlacement(ctx, q, tenant.ID(row.ID))
		if err != nil {
			return err
		}
		out = tenant.Remaining{
			Memories: left.Memories, Conversations: left.Conversations, Record: true, Locations: state.Locations(),
		}
		if out.Failure, err = purgeFailure(ctx, tx, tenant.ID(row.ID)); err != nil {
			return err
		}
		return d.insertPurge(ctx, tx, tenant.ID(row.ID))
	})
	if err != nil {
		return tenant.Remaining{}, fmt.Errorf("retire tenant: %w", err)
	}
	return out, nil
}

// purgeFailure returns the failure of the job that purges a tenant, if it has failed more than once.
func purgeFailure(ctx context.Context, tx pgx.Tx, id tenant.ID) (f tenant.PurgeFailure, err error) {
	err = tx.QueryRow(ctx, `select cardinality(errors), id, coalesce(substring(errors[cardinality(errors)] ->> 'error' from '\(SQLSTATE ([0-9A-Z]{5})\)'), '')
		from river_job where kind = $1 and args ->> 'tenant' = $2 and finalized_at is null and cardinality(errors) > 1 limit 1`,
		tenant.PurgeArgs{}.Kind(), string(id)).Scan(&f.Attempts, &f.Job, &f.SQLState)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return tenant.PurgeFailure{}, fmt.Errorf("read purge job: %w", err)
	}
	return f, nil
}

// auditRetired writes the audit record of a tenant whose state changed.
func auditRetired(ctx context.Context, q *db.Queries, row db.RetireTenantRow) error {
	switch {
	case row.State == row.Before:
		return nil
	case row.State == string(tenant.Purging):
		auditTenant(ctx, q, row.ID, audit.TenantDelete)
		return nil
	}
	auditTenant(ctx, q, row.ID, audit.TenantRetire)
	return nil
}

// PurgeRows implements tenant.PurgeStore. It deletes in batches.
func (d *DB) PurgeRows(ctx context.Context, id tenant.ID) ([]placement.Location, error) {
	for {
		var (
			removed   int64
			locations []placement.Location
		)
		err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
			removed, locations = 0, nil
			purging, err := q.LockPurging(ctx, string(id))
			if err != nil || len(purging) == 0 {
				return err
			}
			if removed, err = purgeBatchOf(ctx, q, id); err != nil || removed > 0 {
				return err
			}
			state, err := readPlacement(ctx, q, id)
			locations = state.Locations()
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("purge tenant: %w", err)
		}
		if removed == 0 {
			return locations, nil
		}
	}
}

// purgeBatchOf deletes a batch of the tenant's data and returns the number of rows.
func purgeBatchOf(ctx context.Context, q *db.Queries, id tenant.ID) (removed int64, err error) {
	p := db.PurgeConversationsParams{TenantID: string(id), Batch: purgeBatch}
	if removed, err = q.PurgeConversations(ctx, p); err != nil || removed > 0 {
		return removed, err
	}
	if removed, err = q.PurgeMemories(ctx, db.PurgeMemoriesParams(p)); err != nil || removed > 0 {
		return removed, err
	}
	if removed, err = purgeImports(ctx, q, id, 0, math.MaxInt64, nil); err != nil || removed > 0 {
		return removed, err
	}
	return q.PurgeUsers(ctx, db.PurgeUsersParams{TenantID: string(id), Batch: purgeUsersBatch})
}

// purgeImports deletes a batch of the imports and idempotency keys of users, up to a time unless it is nil. It returns 0 if there are none.
func purgeImports(ctx context.Context, q *db.Queries, id tenant.ID, first, last tenant.UserID, upTo *time.Time) (removed int64, err error) {
	p := db.PurgeLedgersParams{
		TenantID: string(id), FirstUser: int64(first), LastUser: int64(last), UpTo: upTo, Imports: purgeImportsBatch, Batch: purgePartsBatch,
	}
	if removed, err = q.PurgeLedgers(ctx, p); err != nil || removed == purgePartsBatch {
		return removed, err
	}
	p.Batch = chunkBatch
	if removed, err = q.PurgeChunks(ctx, db.PurgeChunksParams(p)); err != nil || removed > 0 {
		return removed, err
	}
	removed, err = q.PurgeImports(ctx, db.PurgeImportsParams{
		TenantID: p.TenantID, FirstUser: p.FirstUser, LastUser: p.LastUser, UpTo: upTo, Imports: purgeImportsBatch,
	})
	if err != nil || removed > 0 {
		return removed, err
	}
	return q.PurgeRequests(ctx, db.PurgeRequestsParams{
		TenantID: p.TenantID, FirstUser: p.FirstUser, LastUser: p.LastUser, UpTo: upTo, Batch: purgePartsBatch,
	})
}

// DeletePurged implements tenant.PurgeStore. It notifies the operator, whose
// Tenant waits for it, and commits jobs that drop the locations again: jobs of other
// replicas may still write to a shared collection.
func (d *DB) DeletePurged(ctx context.Context, id tenant.ID) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error { return d.deletePurged(ctx, tx, q, id) })
	if err != nil {
		return fmt.Errorf("delete purged tenant: %w", err)
	}
	return nil
}

func (d *DB) deletePurged(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID) error {
	purging, err := q.LockPurging(ctx, string(id))
	if err != nil || len(purging) == 0 {
		return err
	}
	state, err := readPlacement(ctx, q, id)
	if err != nil {
		return err
	}
	for _, at := range state.Locations() {
		if err := d.insertDrop(ctx, tx, at); err != nil {
			return err
		}
	}
	if err := q.NotifyOperator(ctx, string(id)); err != nil {
		return err
	}
	auditTenant(ctx, q, string(id), audit.TenantErase)
	return q.DeletePurgedTenant(ctx, string(id))
}
