package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// One transaction purges at most this many objects, because it blocks the
	// tenant's other writers.
	purgeConversationBatch = 50
	purgeMemoryBatch       = 500
	// purgeJobDelay is longer than the request that begins a purge, so the job
	// only runs if that request did not finish.
	purgeJobDelay = time.Minute
)

// BeginPurge implements account.Store.
func (a Accounts) BeginPurge(ctx context.Context, scope tenant.Scope) (account.PurgeCutoff, error) {
	var cutoff account.PurgeCutoff
	err := a.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		// Imports and extractions end first, so that they store nothing after the cutoff. An import locks its row before the usage.
		if err := q.EndImports(ctx, db.EndImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("end imports: %w", err)
		}
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		if err := q.DeleteExtractions(ctx, db.DeleteExtractionsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("delete extractions: %w", err)
		}
		// Connected apps must not read the account while it is being purged.
		if err := q.DeleteGrants(ctx, db.DeleteGrantsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("revoke connected apps: %w", err)
		}
		if err := q.DeleteUserTokens(ctx, db.DeleteUserTokensParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("revoke tokens: %w", err)
		}
		if err := q.NotifyUser(ctx, db.NotifyUserParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("notify replicas: %w", err)
		}
		appendAudit(ctx, q, scope, audit.AccountDelete)
		if err := dropDeletions(ctx, q, scope); err != nil {
			return err
		}
		row, err := q.MarkAccount(ctx, db.MarkAccountParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		if err != nil {
			return orUnknown(err, scope.Tenant)
		}
		cutoff = account.PurgeCutoff{Memory: row.MemorySeq, At: row.At.UTC()}
		err = q.RecordAccountErasure(ctx, db.RecordAccountErasureParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Objects: []string{strconv.FormatInt(cutoff.Memory, 10)}, UpTo: cutoff.At,
		})
		if err != nil {
			return fmt.Errorf("record erasure: %w", err)
		}
		opts := insertOpts(queue.Purges)
		opts.ScheduledAt = time.Now().Add(purgeJobDelay)
		job, err := a.jobs.InsertTx(ctx, tx, account.PurgeArgs{Tenant: scope.Tenant, User: scope.User, Cutoff: cutoff}, opts)
		if err != nil {
			return fmt.Errorf("enqueue purge job: %w", err)
		}
		cutoff.Job = job.Job.ID
		return nil
	})
	if err != nil {
		return account.PurgeCutoff{}, fmt.Errorf("begin purge: %w", err)
	}
	return cutoff, nil
}

// Purge implements account.Store.
func (a Accounts) Purge(ctx context.Context, scope tenant.Scope, upTo account.PurgeCutoff) (account.Purged, error) {
	var out account.Purged
	err := a.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		// BeginPurge has recorded the erasure of the whole account.
		err := q.SkipObjectErasures(ctx)
		if err != nil {
			return fmt.Errorf("skip records of erasures: %w", err)
		}
		out, err = a.purgeBatch(ctx, tx, q, scope, upTo)
		return err
	})
	if err != nil {
		return account.Purged{}, fmt.Errorf("purge account: %w", err)
	}
	return out, nil
}

// purgeBatch removes a batch of conversations; once there are none, a batch of
// memories, then one of imports; and then the remaining rows.
func (a Accounts) purgeBatch(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, upTo account.PurgeCutoff) (account.Purged, error) {
	conversations, err := q.ConversationsToPurge(ctx, db.ConversationsToPurgeParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.At, Batch: purgeConversationBatch,
	})
	if err != nil {
		return account.Purged{}, fmt.Errorf("list conversations: %w", err)
	}
	if len(conversations) > 0 {
		var deleted chat.Deleted
		err := a.Conversations().delete(ctx, tx, q, scope, conversations, &deleted)
		return account.Purged{Conversations: len(deleted.IDs)}, err
	}
	memories, err := q.MemoriesToPurge(ctx, db.MemoriesToPurgeParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.Memory, Batch: purgeMemoryBatch,
	})
	if err != nil {
		return account.Purged{}, fmt.Errorf("list memories: %w", err)
	}
	if len(memories) > 0 {
		var deleted memory.Deleted
		err := a.Memories().remove(ctx, tx, q, scope, memories, &deleted)
		return account.Purged{Memories: len(deleted.IDs) + len(deleted.Merged)}, err
	}
	n, err := purgeImports(ctx, q, scope.Tenant, scope.User, scope.User, &upTo.At)
	if err != nil {
		return account.Purged{}, fmt.Errorf("delete imports: %w", err)
	}
	if n > 0 {
		return account.Purged{}, nil
	}
	return account.Purged{Done: true}, a.purgeRest(ctx, tx, q, scope, upTo)
}

// purgeRest removes the buckets and grants, and cancels the job.
func (a Accounts) purgeRest(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, upTo account.PurgeCutoff) error {
	if err := dropDeletions(ctx, q, scope); err != nil {
		return err
	}
	err := q.PurgeMerged(ctx, db.PurgeMergedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.Memory})
	if err != nil {
		return fmt.Errorf("delete merged memories: %w", err)
	}
	p := db.PurgeBucketsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.At}
	if err := q.PurgeBuckets(ctx, p); err != nil {
		return fmt.Errorf("delete buckets: %w", err)
	}
	if err := q.PurgeGrants(ctx, db.PurgeGrantsParams(p)); err != nil {
		return fmt.Errorf("revoke connected apps: %w", err)
	}
	if err := q.NotifyUser(ctx, db.NotifyUserParams{TenantID: p.TenantID, UserID: p.UserID}); err != nil {
		return fmt.Errorf("revoke connected apps: %w", err)
	}
	if upTo.Job == 0 {
		return nil
	}
	_, err = a.jobs.JobDeleteTx(ctx, tx, upTo.Job)
	if err != nil && !errors.Is(err, rivertype.ErrNotFound) && !errors.Is(err, rivertype.ErrJobRunning) {
		return fmt.Errorf("cancel purge job: %w", err)
	}
	return nil
}

// dropDeletions makes the deletions of a user final. The erasure of the account includes
// them.
func dropDeletions(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	err := q.SkipObjectErasures(ctx)
	if err == nil {
		err = q.DropDeletions(ctx, db.DropDeletionsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	}
	if err != nil {
		return fmt.Errorf("finish deletions: %w", err)
	}
	return nil
}

// PurgeAccount runs the job of account.PurgeArgs.
func (d *DB) PurgeAccount(ctx context.Context, args account.PurgeArgs) error {
	_, err := account.Purge(ctx, d.Accounts(), tenant.JobScope(args.Tenant, args.User), args.Cutoff)
	return err
}
