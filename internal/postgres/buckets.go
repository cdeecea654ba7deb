package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// uniqueViolation is the SQLSTATE of a duplicate key.
const uniqueViolation = "23505"

var _ memory.BucketStore = (*DB)(nil)

// ListBuckets implements memory.BucketStore.
func (d *DB) ListBuckets(ctx context.Context, scope tenant.Scope) ([]memory.Bucket, error) {
	if scope.User == tenant.NoUser {
		return []memory.Bucket{{Name: memory.DefaultBucket, Default: true}}, nil
	}
	var rows []db.ListBucketsRow
	p := db.ListBucketsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) (err error) {
		rows, err = q.ListBuckets(ctx, p)
		return err
	})
	if err == nil && (len(rows) == 0 || !rows[0].IsDefault) {
		err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) (err error) {
			ensureDefaultBucket(q, scope)
			rows, err = q.ListBuckets(ctx, p)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	return collect(rows, func(r db.ListBucketsRow) memory.Bucket {
		return memory.Bucket{ID: r.ID, Name: r.Name, Description: r.Description, Memories: r.Memories, Default: r.IsDefault}
	}), nil
}

// CreateBucket implements memory.BucketStore.
func (d *DB) CreateBucket(ctx context.Context, scope tenant.Scope, b memory.BucketInput) (int64, error) {
	var answer bucketAnswer
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		return respondOnce(ctx, q, scope, b.Request, &answer, func() error {
			var err error
			if answer.ID, err = createBucket(ctx, q, scope, b); err != nil {
				return err
			}
			appendAudit(ctx, q, scope, audit.BucketCreate, bucketID(answer.ID))
			return nil
		})
	})
	if err != nil {
		return 0, fmt.Errorf("create bucket: %w", err)
	}
	return answer.ID, nil
}

// bucketAnswer is the stored response of a request that created a bucket.
type bucketAnswer struct {
	ID int64 `json:"id"`
}

func createBucket(ctx context.Context, q *db.Queries, scope tenant.Scope, b memory.BucketInput) (int64, error) {
	// The default bucket is created first, so that its name is not available.
	ensureDefaultBucket(q, scope)
	q.Later().LockDefaultBucket(db.LockDefaultBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	n, err := q.CountBuckets(ctx, db.CountBucketsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return 0, fmt.Errorf("count buckets: %w", err)
	}
	p := db.InsertBucketParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: b.Name, NameKey: memory.BucketNameKey(b.Name), Description: b.Description,
	}
	if n >= memory.MaxBuckets {
		return 0, memory.ErrTooManyBuckets
	}
	for range attempts {
		id, err := q.InsertBucket(ctx, p)
		if !errors.Is(err, pgx.ErrNoRows) {
			return id, err
		}
		if _, err := findBucket(ctx, q, scope, memory.BucketRef{Name: b.Name}); !errors.Is(err, memory.ErrBucketNotFound) {
			if err == nil {
				err = memory.BucketExists(b.Name)
			}
			return 0, err
		} // a concurrent request used the id
	}
	return 0, errChanged
}

// UpdateBucket implements memory.BucketStore.
func (d *DB) UpdateBucket(ctx context.Context, scope tenant.Scope, id int64, u memory.BucketUpdate) error {
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		// The default bucket is created first, so that its name is not available.
		ensureDefaultBucket(q, scope)
		b, err := lockBucket(ctx, q, scope, id)
		if err != nil {
			return err
		}
		if err := memory.CheckBucketUpdate(b, u); err != nil {
			return err
		}
		p := db.UpdateBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Name: u.Name, Description: u.Description}
		if u.Name != nil {
			key := memory.BucketNameKey(*u.Name)
			p.NameKey = &key
		}
		err = q.UpdateBucket(ctx, p)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation {
			return memory.BucketExists(*u.Name)
		}
		if err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.BucketUpdate, bucketID(id))
		return nil
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
		if total > 0 && errors.Is(err, memory.ErrBucketNotFound) {
			return total, nil // a concurrent request deleted the bucket
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

// emptyBucket moves a batch of the bucket's memories to the default bucket and
// returns their number. After the last batch it deletes the bucket.
func (d *DB) emptyBucket(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, id int64) (int, error) {
	// Every write that adds a memory to a bucket holds this lock.
	if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
		return 0, orUnknown(err, scope.Tenant)
	}
	b, err := lockBucket(ctx, q, scope, id)
	if err != nil {
		return 0, err
	}
	if err := memory.CheckBucketDelete(b); err != nil {
		return 0, err
	}
	// CreateBucket created the default bucket.
	to, err := q.DefaultBucket(ctx, db.DefaultBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return 0, fmt.Errorf("find default bucket: %w", err)
	}
	n, err := d.Memories().moveBucket(ctx, tx, q, scope, id, to)
	if err != nil || n == moveBatch {
		return n, err
	}
	err = q.DeleteBucket(ctx, db.DeleteBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	if err != nil {
		return n, err
	}
	appendAudit(ctx, q, scope, audit.BucketDelete, bucketID(id))
	return n, nil
}

// lockBucket returns a bucket of the user, or ErrBucketNotFound.
func lockBucket(ctx context.Context, q *db.Queries, scope tenant.Scope, id int64) (memory.Bucket, error) {
	b, err := q.LockBucket(ctx, db.LockBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return memory.Bucket{}, memory.ErrBucketNotFound
	}
	if err != nil {
		return memory.Bucket{}, fmt.Errorf("lock bucket: %w", err)
	}
	return memory.Bucket{ID: id, Name: b.Name, Description: b.Description, Default: b.IsDefault}, nil
}

// findBucket returns the id of the user's bucket, or ErrBucketNotFound.
func findBucket(ctx context.Context, q *db.Queries, scope tenant.Scope, b memory.BucketRef) (int64, error) {
	key := memory.BucketNameKey(b.Name)
	if b.Name != "" && key == "" {
		return 0, memory.ErrBucketNotFound // a bucket name contains visible characters
	}
	row, err := q.FindBucket(ctx, db.FindBucketParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: b.ID, NameKey: key})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, memory.ErrBucketNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("find bucket: %w", err)
	}
	return row.ID, nil
}

// addToBuckets adds deltas to the memory counts of buckets.
func addToBuckets(q *db.Queries, scope tenant.Scope, deltas map[int64]int64) {
	p := db.AddBucketMemoriesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}
	for id, n := range deltas {
		p.Ids, p.Deltas = append(p.Ids, id), append(p.Deltas, n)
	}
	q.Later().AddBucketMemories(p)
}

func ensureDefaultBucket(q *db.Queries, scope tenant.Scope) {
	q.Later().EnsureDefaultBucket(db.EnsureDefaultBucketParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Name: memory.DefaultBucket, NameKey: memory.BucketNameKey(memory.DefaultBucket),
	})
}
