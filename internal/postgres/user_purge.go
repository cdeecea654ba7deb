package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// removeUser revokes the access of a user who is no longer listed. With Retain
// the row stays, so that a user who is listed again has the same data; with
// Delete a job deletes the data. It widens the transaction's scope to the whole tenant.
func (d *DB) removeUser(ctx context.Context, tx pgx.Tx, q *db.Queries, id string, u db.LockUsersRow, policy tenant.DeletionPolicy) error {
	verb := audit.UserDeactivate
	if policy == tenant.Delete {
		verb = audit.UserDelete
	}
	// Without a scope, row-level security hides the extractions, grants and created tokens.
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: id, UserID: allUsers}); err != nil {
		return err
	}
	auditUser(ctx, q, id, u.ID, verb)
	var err error
	if policy == tenant.Delete {
		err = q.PurgeUser(ctx, db.PurgeUserParams{TenantID: id, ID: u.ID})
		if err == nil {
			err = q.DeleteExtractions(ctx, db.DeleteExtractionsParams{TenantID: id, UserID: u.ID})
		}
	} else {
		err = q.SetUser(ctx, db.SetUserParams{TenantID: id, ID: u.ID, Email: u.Email, Active: false})
	}
	if err == nil {
		err = q.DeleteUserSessions(ctx, db.DeleteUserSessionsParams{TenantID: id, UserID: u.ID})
	}
	if err != nil {
		return err
	}
	if err := endDelegated(ctx, q, id, u.ID); err != nil {
		return err
	}
	if err := q.NotifyUser(ctx, db.NotifyUserParams{TenantID: id, UserID: u.ID}); err != nil {
		return err
	}
	err = revoke(ctx, q, db.RevokeTokensParams{TenantID: id, UserID: u.ID, Below: everyGeneration, Overlap: interval(0)})
	if err != nil || policy != tenant.Delete {
		return err
	}
	return d.insertJob(ctx, tx, queue.Purges, tenant.PurgeUserArgs{Tenant: tenant.ID(id), User: tenant.UserID(u.ID)})
}

// PurgeUser deletes all data of a user who is no longer listed, in batches, and
// the row last. It is idempotent and does nothing for other users.
func (d *DB) PurgeUser(ctx context.Context, scope tenant.Scope) error {
	purging, err := db.New(d.pool).IsPurgingUser(ctx, db.IsPurgingUserParams{TenantID: string(scope.Tenant), ID: int64(scope.User)})
	if err != nil {
		return fmt.Errorf("purge user: %w", mapError(err))
	}
	for purging {
		if purging, err = d.purgeUserBatch(ctx, scope); err != nil {
			return fmt.Errorf("purge user: %w", err)
		}
	}
	return nil
}

// purgeUserBatch deletes a batch of conversations; once there are none, a batch
// of memories, then one of imports; and then the row. remains reports whether there may be data.
func (d *DB) purgeUserBatch(ctx context.Context, scope tenant.Scope) (remains bool, err error) {
	var conversations, memories []string
	err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		conversations, memories, err = dataOfUser(ctx, q, scope, purgeBatch)
		return err
	})
	switch {
	case err != nil:
		return false, err
	case len(conversations) > 0:
		remains, err = true, d.purgeConversations(ctx, scope, conversations)
	case len(memories) > 0:
		remains, err = true, d.purgeMemories(ctx, scope, memories)
	default:
		if remains, err = d.purgeUserImports(ctx, scope); err == nil && !remains {
			remains, err = d.deletePurgedUser(ctx, scope)
		}
	}
	if fault.Is(err, fault.NotFound) {
		return false, nil // the tenant was deleted concurrently
	}
	return remains, err
}

// purgeUserImports deletes a batch of imports and idempotency keys, which count in no usage.
// remains reports whether there were any.
func (d *DB) purgeUserImports(ctx context.Context, scope tenant.Scope) (remains bool, err error) {
	err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		n, err := purgeImports(ctx, q, scope.Tenant, scope.User, scope.User, nil)
		remains = n > 0
		return err
	})
	return remains, err
}

// deletePurgedUser deletes the row of a user without data. remains reports that a transaction which began
// before the purge has stored data meanwhile.
func (d *DB) deletePurgedUser(ctx context.Context, scope tenant.Scope) (remains bool, err error) {
	err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		// An import locks its row before the usage.
		if err := q.EndImports(ctx, db.EndImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)}); err != nil {
			return fmt.Errorf("end imports: %w", err)
		}
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		conversations, memories, err := dataOfUser(ctx, q, scope, 1)
		if remains = len(conversations)+len(memories) > 0; err != nil || remains {
			return err
		}
		// Before the row, which has the pseudonym. Nothing links the record to the user afterwards.
		appendAudit(ctx, q, scope, audit.UserErase)
		// The delete cascades to buckets, tokens, and imports and idempotency keys that were stored meanwhile.
		return q.DeletePurgedUser(ctx, db.DeletePurgedUserParams{TenantID: string(scope.Tenant), ID: int64(scope.User)})
	})
	return remains, err
}

// dataOfUser returns the ids of at most n conversations and n memories.
func dataOfUser(ctx context.Context, q *db.Queries, scope tenant.Scope, n int32) (conversations, memories []string, err error) {
	p := db.ConversationsOfUserParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Batch: n}
	if conversations, err = q.ConversationsOfUser(ctx, p); err != nil {
		return nil, nil, err
	}
	memories, err = q.MemoriesOfUser(ctx, db.MemoriesOfUserParams(p))
	return conversations, memories, err
}

// purgeConversations deletes conversations of a user who is being erased. The audit log
// has a record of the user instead.
func (d *DB) purgeConversations(ctx context.Context, scope tenant.Scope, ids []string) error {
	return d.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		return d.Conversations().delete(ctx, tx, q, scope, ids, &chat.Deleted{})
	})
}

// purgeMemories is purgeConversations for memories.
func (d *DB) purgeMemories(ctx context.Context, scope tenant.Scope, ids []string) error {
	return d.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		return d.Memories().remove(ctx, tx, q, scope, ids, &memory.Deleted{})
	})
}
