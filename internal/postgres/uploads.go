package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ chat.UploadStore = Conversations{}

const (
	// queueImports is the queue of imports, as internal/jobs works on it.
	queueImports = "imports"
	// uploadLease is how long an upload may pause before it counts as abandoned.
	uploadLease = 5 * time.Minute
	// watchPriority is that of the jobs that look whether others live: behind
	// all that is to be done.
	watchPriority = 4
)

// BeginUpload implements chat.UploadStore. Each chunk is committed by itself,
// since an upload may take hours; the job committed here removes what a replica
// that dies leaves.
func (c Conversations) BeginUpload(ctx context.Context, scope tenant.Scope) (string, error) {
	id, err := newID()
	if err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	err = c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if err := mayUpload(ctx, q, scope); err != nil {
			return err
		}
		p := db.BeginUploadParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Lease: seconds(uploadLease)}
		if err := q.BeginUpload(ctx, p); err != nil {
			return err
		}
		return c.DB.insertImportJob(ctx, tx, scope, id, uploadLease)
	})
	if err != nil {
		return "", fmt.Errorf("begin upload: %w", err)
	}
	return id, nil
}

// mayUpload refuses a file that there is surely no room for, before it is sent.
func mayUpload(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	n, err := q.CountUnfinishedImports(ctx, db.CountUnfinishedImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return fmt.Errorf("count imports: %w", err)
	}
	if n >= chat.MaxUnfinished {
		return &fault.Error{Kind: fault.RateLimited, RetryAfter: time.Minute,
			Message: fmt.Sprintf("%d of your imports are still under way: wait until one is done", n)}
	}
	left, err := q.StorageLeft(ctx, string(scope.Tenant))
	if err != nil {
		return orUnknown(err, scope.Tenant)
	}
	if left.LeftOver <= 0 {
		return storageUsedUp(left.Hard, left.Used)
	}
	return nil
}

// AppendChunk implements chat.UploadStore.
func (c Conversations) AppendChunk(ctx context.Context, scope tenant.Scope, id string, n int, data []byte) error {
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		kept, err := q.KeepUpload(ctx, db.KeepUploadParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Lease: seconds(uploadLease),
		})
		if err != nil {
			return err
		}
		if kept == 0 {
			return uploadGone()
		}
		return q.InsertChunk(ctx, db.InsertChunkParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ImportID: id, N: int32(n), Data: data,
		})
	})
	if err != nil {
		return fmt.Errorf("store chunk: %w", err)
	}
	return nil
}

// uploadAnswer is what is kept of a request that sent a file.
type uploadAnswer struct {
	ImportID string `json:"import"`
}

// FinishUpload implements chat.UploadStore.
func (c Conversations) FinishUpload(ctx context.Context, scope tenant.Scope, id string, f chat.UploadedFile) (string, error) {
	var answer uploadAnswer
	err := c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		answer = uploadAnswer{}
		return answerOnce(ctx, q, scope, f.Request, &answer, func() error {
			n, err := q.FinishUpload(ctx, db.FinishUploadParams{
				TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Asked: f.Platform, Size: f.Size,
			})
			if err != nil {
				return err
			}
			if n == 0 {
				return uploadGone()
			}
			answer.ImportID = id
			return c.DB.insertImportJob(ctx, tx, scope, id, 0)
		})
	})
	if err == nil && answer.ImportID != id { // it was sent before
		err = c.DropUpload(ctx, scope, id)
	}
	if err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	return answer.ImportID, nil
}

// DropUpload implements chat.UploadStore.
func (c Conversations) DropUpload(ctx context.Context, scope tenant.Scope, id string) error {
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		return q.DropUpload(ctx, db.DropUploadParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	})
	if err != nil {
		return fmt.Errorf("drop upload: %w", err)
	}
	return nil
}

// insertImportJob commits a job that imports a file, after a while or at once.
// There may be several: whoever comes while another one is at it goes away.
func (d *DB) insertImportJob(ctx context.Context, tx pgx.Tx, scope tenant.Scope, id string, after time.Duration) error {
	opts := &river.InsertOpts{Queue: queueImports, MaxAttempts: maxAttempts}
	if after > 0 {
		opts.ScheduledAt, opts.Priority = time.Now().Add(after), watchPriority
	}
	_, err := d.jobs.InsertTx(ctx, tx, chat.ImportArgs{Tenant: scope.Tenant, User: scope.User, Import: id}, opts)
	if err != nil {
		return fmt.Errorf("commit import job: %w", err)
	}
	return nil
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

func uploadGone() error {
	return fault.New(fault.Invalid, "this upload paused for too long and was dropped: send the file again")
}
