package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// uploadLease is how long an upload may pause before it expires.
	uploadLease = 5 * time.Minute
)

// BeginUpload implements importer.UploadStore. Each chunk has its own transaction,
// because an upload may take hours. The job committed here deletes the upload if
// its replica dies.
func (i Imports) BeginUpload(ctx context.Context, scope tenant.Scope) (string, error) {
	id, err := newID()
	if err != nil {
		return "", fmt.Errorf("generate id: %w", err)
	}
	err = i.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if err := checkUpload(ctx, q, scope); err != nil {
			return err
		}
		p := db.BeginUploadParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Lease: seconds(uploadLease)}
		if err := q.BeginUpload(ctx, p); err != nil {
			return err
		}
		return i.insertImportJob(ctx, tx, scope, id, queue.Check, uploadLease)
	})
	if err != nil {
		return "", fmt.Errorf("begin upload: %w", err)
	}
	return id, nil
}

// checkUpload rejects a file before it is sent if it cannot be imported. It locks
// the user until the transaction ends.
func checkUpload(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	if err := q.LockUser(ctx, db.LockUserParams{TenantID: string(scope.Tenant), ID: int64(scope.User)}); err != nil {
		return fmt.Errorf("lock user: %w", err)
	}
	n, err := q.CountUnfinishedImports(ctx, db.CountUnfinishedImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return fmt.Errorf("count imports: %w", err)
	}
	if err := importer.CheckUnfinished(n); err != nil {
		return err
	}
	return requireStorage(ctx, q, scope, 1)
}

// AppendChunk implements importer.UploadStore. It checks the limits last, because
// that blocks other uploads until the transaction ends.
func (i Imports) AppendChunk(ctx context.Context, scope tenant.Scope, id string, c importer.Chunk, limits importer.UploadLimits) error {
	err := i.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.ExtendUpload(ctx, db.ExtendUploadParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Bytes: int64(len(c.Data)), Lease: seconds(uploadLease), Earlier: c.Earlier,
		})
		if err != nil {
			return err
		}
		if n != int64(1+len(c.Earlier)) {
			return importer.ErrUploadExpired
		}
		err = q.InsertChunk(ctx, db.InsertChunkParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ImportID: id, N: integer(c.N), Data: c.Data,
		})
		if err != nil {
			return err
		}
		return checkUploads(ctx, q, scope, c, limits)
	})
	if err != nil {
		return fmt.Errorf("store chunk: %w", err)
	}
	return nil
}

// checkUploads checks the limits after a chunk was stored. The lock ensures that
// the sums include the chunks of all other uploads.
func checkUploads(ctx context.Context, q *db.Queries, scope tenant.Scope, c importer.Chunk, limits importer.UploadLimits) error {
	if err := q.LockUploads(ctx); err != nil {
		return fmt.Errorf("lock uploads: %w", err)
	}
	sums, err := q.UploadBytes(ctx, string(scope.Tenant))
	if err != nil {
		return orUnknown(err, scope.Tenant)
	}
	return limits.Check(importer.UploadUsage{
		Chunk: int64(len(c.Data)), User: sums.UserBytes, Tenant: sums.TenantBytes, Total: sums.TotalBytes, StorageLeft: sums.StorageLeft,
	})
}

// uploadAnswer is the stored answer of an upload request.
type uploadAnswer struct {
	ImportID   string   `json:"import"`
	FurtherIDs []string `json:"more,omitempty"` // of the imports of further files
}

// FinishUploads implements importer.UploadStore.
func (i Imports) FinishUploads(ctx context.Context, scope tenant.Scope, r importer.UploadRequest) ([]string, error) {
	var answer uploadAnswer
	err := i.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		answer = uploadAnswer{}
		return respondOnce(ctx, q, scope, r.Request, &answer, func() error {
			if err := i.finishUploads(ctx, tx, q, scope, r); err != nil {
				return err
			}
			answer.ImportID = r.Files[0].ID
			for _, f := range r.Files[1:] {
				answer.FurtherIDs = append(answer.FurtherIDs, f.ID)
			}
			return nil
		})
	})
	for _, f := range r.Files {
		if err == nil && answer.ImportID != r.Files[0].ID { // the request is a repetition
			err = i.DeleteUpload(ctx, scope, f.ID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("finish uploads: %w", err)
	}
	return append([]string{answer.ImportID}, answer.FurtherIDs...), nil
}

// finishUploads queues the imports of files. The first file of each user of a tenant is
// imported before further ones.
func (i Imports) finishUploads(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, r importer.UploadRequest) error {
	unfinished, err := q.CountUnfinishedImports(ctx, db.CountUnfinishedImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return fmt.Errorf("count imports: %w", err)
	}
	priority := queue.Waiting
	if unfinished > int64(len(r.Files)) {
		priority = queue.Later
	}
	for _, f := range r.Files {
		n, err := q.FinishUpload(ctx, db.FinishUploadParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: f.ID, Platform: r.Platform, SkipInvalid: r.SkipInvalid,
			File: f.Name, Size: f.Size,
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return importer.ErrUploadExpired
		}
		if err := i.insertImportJob(ctx, tx, scope, f.ID, priority, 0); err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.ImportCreate, f.ID)
		priority = queue.Later
	}
	return nil
}

// DeleteUpload implements importer.UploadStore.
func (i Imports) DeleteUpload(ctx context.Context, scope tenant.Scope, id string) error {
	err := i.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		return q.DeleteUpload(ctx, db.DeleteUploadParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	})
	if err != nil {
		return fmt.Errorf("delete upload: %w", err)
	}
	return nil
}

// insertImportJob inserts a job that imports a file after a delay. An import may
// have several jobs; the lease ensures that one of them works on it.
func (d *DB) insertImportJob(ctx context.Context, tx pgx.Tx, scope tenant.Scope, id string, priority int, delay time.Duration) error {
	opts := insertOpts(queue.Imports)
	opts.Priority = priority
	if delay > 0 {
		opts.ScheduledAt = time.Now().Add(delay)
	}
	_, err := d.jobs.InsertTx(ctx, tx, importer.Args{Tenant: scope.Tenant, User: scope.User, Import: id}, opts)
	if err != nil {
		return fmt.Errorf("insert import job: %w", err)
	}
	return nil
}

func seconds(d time.Duration) int32 { return integer(d / time.Second) }
