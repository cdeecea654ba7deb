package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ memory.BucketStore = (*DB)(nil)

// ListBuckets implements memory.BucketStore.
func (d *DB) ListBuckets(ctx context.Context, scope tenant.Scope) ([]memory.Bucket, error) {
	out := []memory.Bucket{}
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		p := db.ListBucketsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}
		rows, err := q.ListBuckets(ctx, p)
		if err == nil && (len(rows) == 0 || !rows[0].IsDefault) {
			if err = ensureDefaultBucket(ctx, q, scope); err == nil {
				rows, err = q.ListBuckets(ctx, p)
			}
		}
		if err != nil {
			return err
		}
		out = collect(rows, func(r db.ListBucketsRow) memory.Bucket {
			return memory.Bucket{ID: r.ID, Name: r.Name, Description: r.Description, Memories: r.Memories, Default: r.IsDefault}
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	return out, nil
}

// CreateBucket implements memory.BucketStore.
func (d *DB) CreateBucket(ctx context.Context, scope tenant.Scope, b memory.BucketInput) (int64, error) {
	var id int64
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		// First, so that nobody takes its name.
		if err := ensureDefaultBucket(ctx, q, scope); err != nil {
			return err
		}
		var err error
		id, err = q.InsertBucket(ctx, db.InsertBucketParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: b.Name, Description: b.Description,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.Conflict, "a bucket named %q exists already", b.Name)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("create bucket: %w", err)
	}
	return id, nil
}

func ensureDefaultBucket(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	err := q.EnsureDefaultBucket(ctx, db.EnsureDefaultBucketParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: memory.DefaultBucket,
	})
	if err != nil {
		return fmt.Errorf("make default bucket: %w", err)
	}
	return nil
}
