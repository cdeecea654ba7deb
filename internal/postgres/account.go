package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// purgedConversations and purgedMemories are how many of an account one
	// transaction removes: it holds up the tenant's other writers for so long.
	purgedConversations = 50
	purgedMemories      = 500
	// purgeLater is when the job of a purge looks whether it is needed: after
	// the request that purges has ended.
	purgeLater = time.Minute
)

// Mark implements account.Store.
func (a Accounts) Mark(ctx context.Context, scope tenant.Scope) (account.Mark, error) {
	var mark account.Mark
	err := a.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		// First: nothing of them comes in behind the mark.
		if err := q.EndImports(ctx, db.EndImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("end imports: %w", err)
		}
		// Nor does anything go out to programs while the rest is removed.
		if err := q.DeleteGrants(ctx, db.DeleteGrantsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("disconnect programs: %w", err)
		}
		if err := q.NotifyUser(ctx, db.NotifyUserParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("disconnect programs: %w", err)
		}
		row, err := q.MarkAccount(ctx, db.MarkAccountParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		if err != nil {
			return orUnknown(err, scope.Tenant)
		}
		mark = account.Mark{Memory: row.MemorySeq, At: row.At.UTC()}
		job, err := a.jobs.InsertTx(ctx, tx, account.PurgeArgs{Tenant: scope.Tenant, User: scope.User, Mark: mark},
			&river.InsertOpts{Queue: queueBacklog, MaxAttempts: maxAttempts, ScheduledAt: time.Now().Add(purgeLater)})
		if err != nil {
			return fmt.Errorf("commit purge job: %w", err)
		}
		mark.Job = job.Job.ID
		return nil
	})
	if err != nil {
		return account.Mark{}, fmt.Errorf("mark account: %w", err)
	}
	return mark, nil
}

// Purge implements account.Store.
func (a Accounts) Purge(ctx context.Context, scope tenant.Scope, upTo account.Mark) (account.Purged, error) {
	var out account.Purged
	err := a.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		var err error
		out, err = a.purgeBatch(ctx, tx, q, scope, upTo)
		return err
	})
	if err != nil {
		return account.Purged{}, fmt.Errorf("purge account: %w", err)
	}
	return out, nil
}

// purgeBatch removes conversations, or memories when there are none, or the
// rest when there are neither.
func (a Accounts) purgeBatch(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, upTo account.Mark) (account.Purged, error) {
	conversations, err := q.ConversationsToPurge(ctx, db.ConversationsToPurgeParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.At, Batch: purgedConversations,
	})
	if err != nil {
		return account.Purged{}, fmt.Errorf("list conversations: %w", err)
	}
	if len(conversations) > 0 {
		var gone chat.Deleted
		err := a.Conversations().remove(ctx, tx, q, scope, conversations, &gone)
		return account.Purged{Conversations: len(gone.IDs)}, err
	}
	memories, err := q.MemoriesToPurge(ctx, db.MemoriesToPurgeParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.Memory, Batch: purgedMemories,
	})
	if err != nil {
		return account.Purged{}, fmt.Errorf("list memories: %w", err)
	}
	if len(memories) > 0 {
		var gone memory.Deleted
		err := a.Memories().remove(ctx, tx, q, scope, memories, &gone)
		return account.Purged{Memories: len(gone.IDs)}, err
	}
	return account.Purged{Done: true}, a.purgeRest(ctx, tx, q, scope, upTo)
}

// purgeRest removes what nothing else of the account needs any more.
func (a Accounts) purgeRest(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, upTo account.Mark) error {
	p := db.PurgeBucketsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), UpTo: upTo.At}
	if err := q.PurgeBuckets(ctx, p); err != nil {
		return fmt.Errorf("remove buckets: %w", err)
	}
	if err := q.PurgeRequests(ctx, db.PurgeRequestsParams(p)); err != nil {
		return fmt.Errorf("forget requests: %w", err)
	}
	if err := q.PurgeGrants(ctx, db.PurgeGrantsParams(p)); err != nil {
		return fmt.Errorf("disconnect programs: %w", err)
	}
	if err := q.NotifyUser(ctx, db.NotifyUserParams{TenantID: p.TenantID, UserID: p.UserID}); err != nil {
		return fmt.Errorf("disconnect programs: %w", err)
	}
	if upTo.Job == 0 {
		return nil
	}
	_, err := a.jobs.JobDeleteTx(ctx, tx, upTo.Job)
	if err != nil && !errors.Is(err, rivertype.ErrNotFound) && !errors.Is(err, rivertype.ErrJobRunning) {
		return fmt.Errorf("take purge job back: %w", err)
	}
	return nil
}

// PurgeAccount does the job of account.PurgeArgs.
func (d *DB) PurgeAccount(ctx context.Context, args account.PurgeArgs) error {
	_, err := account.Purge(ctx, d.Accounts(), tenant.Scope{Tenant: args.Tenant, User: args.User}, args.Mark)
	return err
}
