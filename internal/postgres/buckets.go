package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	var answer bucketAnswer
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		return answerOnce(ctx, q, scope, b.Request, &answer, func() error {
			var err error
			answer.ID, err = createBucket(ctx, q, scope, b)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("create bucket: %w", err)
	}
	return answer.ID, nil
}

// bucketAnswer is what is kept of a request that made a bucket.
type bucketAnswer struct {
	ID int64 `json:"id"`
}

func createBucket(ctx context.Context, q *db.Queries, scope tenant.Scope, b memory.BucketInput) (int64, error) {
	// First, so that nobody takes its name.
	if err := ensureDefaultBucket(ctx, q, scope); err != nil {
		return 0, err
	}
	p := db.InsertBucketParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: b.Name, NameKey: nameKey(b.Name), Description: b.Description,
	}
	for range attempts {
		id, err := q.InsertBucket(ctx, p)
		if !errors.Is(err, pgx.ErrNoRows) {
			return id, err
		}
		if _, err := findBucket(ctx, q, scope, memory.BucketRef{Name: b.Name}); !errors.Is(err, memory.ErrNoBucket) {
			if err == nil {
				err = fault.New(fault.Conflict, "a bucket named %q exists already", b.Name)
			}
			return 0, err
		} // somebody else took the id
	}
	return 0, fault.New(fault.Unavailable, "other buckets are being made at this moment; try again")
}

// UpdateBucket implements memory.BucketStore.
func (d *DB) UpdateBucket(ctx context.Context, scope tenant.Scope, id int64, u memory.BucketUpdate) error {
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		// First, so that nobody takes its name.
		if err := ensureDefaultBucket(ctx, q, scope); err != nil {
			return err
		}
		b, err := lockBucket(ctx, q, scope, id)
		if err != nil {
			return err
		}
		if b.IsDefault && u.Name != nil && *u.Name != b.Name {
			return fault.New(fault.Conflict, "%s is the default bucket and cannot be renamed", b.Name)
		}
		p := db.UpdateBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Name: u.Name, Description: u.Description}
		if u.Name != nil {
			key := nameKey(*u.Name)
			p.NameKey = &key
		}
		err = q.UpdateBucket(ctx, p)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23505" { // the name is taken
			return fault.New(fault.Conflict, "a bucket named %q exists already", *u.Name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("update bucket: %w", err)
	}
	return nil
}

// DeleteBucket implements memory.BucketStore.
func (d *DB) DeleteBucket(ctx context.Context, scope tenant.Scope, id int64) (int, error) {
	total := 0
	for {
		n := 0
		err := d.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
			var err error
			n, err = d.emptyBucket(ctx, tx, q, scope, id)
			return err
		})
		if total > 0 && errors.Is(err, memory.ErrNoBucket) {
			return total, nil // another request was faster with the last batch
		}
		if err != nil {
			return total, fmt.Errorf("delete bucket: %w", err)
		}
		total += n
		if n < moveBatch {
			return total, nil
		}
	}
}

// emptyBucket moves a batch of a bucket's memories to the default one and
// returns how many; when that was less than a batch, the bucket is deleted.
func (d *DB) emptyBucket(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, id int64) (int, error) {
	// Whoever puts a memory into a bucket holds it too.
	if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
		return 0, orUnknown(err, scope.Tenant)
	}
	b, err := lockBucket(ctx, q, scope, id)
	if err != nil {
		return 0, err
	}
	if b.IsDefault {
		return 0, fault.New(fault.Conflict, "%s is the default bucket and cannot be deleted", b.Name)
	}
	// CreateBucket has made it.
	to, err := q.DefaultBucket(ctx, db.DefaultBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return 0, fmt.Errorf("find default bucket: %w", err)
	}
	n, err := d.Memories().moveBucket(ctx, tx, q, scope, id, to)
	if err != nil || n == moveBatch {
		return n, err
	}
	return n, q.DeleteBucket(ctx, db.DeleteBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
}

// lockBucket returns a bucket of the user; ErrNoBucket.
func lockBucket(ctx context.Context, q *db.Queries, scope tenant.Scope, id int64) (db.LockBucketRow, error) {
	b, err := q.LockBucket(ctx, db.LockBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return b, memory.ErrNoBucket
	}
	if err != nil {
		return b, fmt.Errorf("lock bucket: %w", err)
	}
	return b, nil
}

func ensureDefaultBucket(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	err := q.EnsureDefaultBucket(ctx, db.EnsureDefaultBucketParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: memory.DefaultBucket, NameKey: nameKey(memory.DefaultBucket),
	})
	if err != nil {
		return fmt.Errorf("make default bucket: %w", err)
	}
	return nil
}
