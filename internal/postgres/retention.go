package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// How long records are kept after their last use, as in docs/operations.md.
const (
	keepImports  = 90 * 24 * time.Hour
	keepTokens   = 30 * 24 * time.Hour
	keepRequests = 24 * time.Hour
	keepAudit    = 365 * 24 * time.Hour
	keepUsage    = 400 // days
	keepReports  = 7 * 24 * time.Hour
	keepEvents   = 7 * 24 * time.Hour
)

// expireBatch is the number of rows that a retention transaction deletes.
const expireBatch = 500

// ListTenantIDs implements jobs.Retention.
func (d *DB) ListTenantIDs(ctx context.Context) ([]tenant.ID, error) {
	ids, err := db.New(d.pool).ListTenantIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", mapError(err))
	}
	return collect(ids, func(id string) tenant.ID { return tenant.ID(id) }), nil
}

// ExpireRecords implements jobs.Retention.
func (d *DB) ExpireRecords(ctx context.Context, id tenant.ID) error {
	t := string(id)
	for name, expire := range map[string]func(*db.Queries) (int64, error){
		"imports": func(q *db.Queries) (int64, error) {
			return q.ExpireImports(ctx, db.ExpireImportsParams{TenantID: t, Age: interval(keepImports), Batch: expireBatch})
		},
		"tokens": func(q *db.Queries) (int64, error) {
			return q.ExpireTokens(ctx, db.ExpireTokensParams{TenantID: t, Age: interval(keepTokens), Batch: expireBatch})
		},
		"tokens of users": func(q *db.Queries) (int64, error) {
			return q.ExpireUserTokens(ctx, db.ExpireUserTokensParams{TenantID: t, Age: interval(keepTokens), Batch: expireBatch})
		},
		"idempotency keys": func(q *db.Queries) (int64, error) {
			return q.ExpireTenantRequests(ctx, db.ExpireTenantRequestsParams{TenantID: t, Age: interval(keepRequests), Batch: expireBatch})
		},
		"extractions": func(q *db.Queries) (int64, error) {
			return q.ExpireExtractions(ctx, db.ExpireExtractionsParams{TenantID: t, Age: interval(keepEvents), Batch: expireBatch})
		},
		"deletions": func(q *db.Queries) (int64, error) {
			return q.ExpireDeletions(ctx, db.ExpireDeletionsParams{TenantID: t, Batch: expireBatch})
		},
		"audit records": func(q *db.Queries) (int64, error) {
			return q.ExpireAudit(ctx, db.ExpireAuditParams{Age: interval(keepAudit), Batch: expireBatch})
		},
		"usage": func(q *db.Queries) (int64, error) {
			return q.ExpireUsage(ctx, db.ExpireUsageParams{TenantID: t, Days: keepUsage, Batch: expireBatch})
		},
	} {
		if err := d.expire(ctx, id, expire); err != nil {
			return fmt.Errorf("expire %s: %w", name, err)
		}
	}
	return nil
}

// expire deletes batches, each in its own transaction, until one is incomplete.
func (d *DB) expire(ctx context.Context, id tenant.ID, batch func(*db.Queries) (int64, error)) error {
	for {
		var n int64
		err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
			var err error
			n, err = batch(q)
			return err
		})
		if err != nil || n < expireBatch {
			return err
		}
	}
}
