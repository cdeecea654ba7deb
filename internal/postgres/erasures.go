package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Erasures implements erasure.Store.
type Erasures struct{ *DB }

var _ erasure.Store = Erasures{}

// Erasures returns the store of erasures.
func (d *DB) Erasures() Erasures { return Erasures{d} }

// State implements erasure.Store.
func (e Erasures) State(ctx context.Context) (erasure.State, error) {
	row, err := db.New(e.pool).ReadErasureLedger(ctx, e.config.RestoreID)
	if err != nil {
		return erasure.State{}, fmt.Errorf("read state of erasures: %w", mapError(err))
	}
	return erasure.State{Ledger: row.Ledger, Position: row.Position, Current: row.Database == row.Identity}, nil
}

// CheckErasures returns Unavailable if the database was restored and the erasure
// ledger has not been applied to it yet, or if no ledger is in use.
func (d *DB) CheckErasures(ctx context.Context) error {
	s, err := d.Erasures().State(ctx)
	if err != nil || s.Current && s.Ledger != "" {
		return err
	}
	if s.Ledger == "" {
		return fault.New(fault.Unavailable, "no erasure ledger is attached; start `mnemo erasures record`")
	}
	return fault.New(fault.Unavailable, "the database was restored and lacks erasures: `mnemo erasures record` or `mnemo erasures apply` must repeat them")
}

// Pending implements erasure.Store.
func (e Erasures) Pending(ctx context.Context, limit int) ([]erasure.Entry, error) {
	rows, err := db.New(e.pool).PendingErasures(ctx, integer(limit))
	if err != nil {
		return nil, fmt.Errorf("list pending erasures: %w", mapError(err))
	}
	return collect(rows, func(r db.Erasure) erasure.Entry {
		out := erasure.Entry{
			ID: r.ID, At: r.At.UTC(), Kind: erasure.Kind(r.Kind), Tenant: tenant.ID(r.TenantID), User: tenant.UserID(r.UserID), Objects: r.Objects,
		}
		if r.Until != nil {
			until := r.Until.UTC()
			out.Until = &until
		}
		return out
	}), nil
}

// Known implements erasure.Store.
func (e Erasures) Known(ctx context.Context, ids []string) ([]string, error) {
	known, err := db.New(e.pool).KnownErasures(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("find pending erasures: %w", mapError(err))
	}
	return known, nil
}

var errRestored = fault.New(fault.Unavailable, "the database was restored in the meantime")

// Acknowledge implements erasure.Store.
func (e Erasures) Acknowledge(ctx context.Context, ledger string, from, to int64, ids []string) error {
	err := e.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.AdvanceErasureLedger(ctx, db.AdvanceErasureLedgerParams{Ledger: ledger, Before: from, Position: to})
		if err != nil {
			return err
		}
		if n == 0 {
			return errRestored
		}
		// A database that lacks some of them lost the transactions that erased, too.
		if n, err = q.DeleteErasures(ctx, ids); err == nil && n != int64(len(ids)) {
			return errRestored
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("acknowledge erasures: %w", err)
	}
	return nil
}

// Attach implements erasure.Store.
func (e Erasures) Attach(ctx context.Context, ledger string, position int64, ids []string) error {
	err := e.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		row, err := q.ReadErasureLedger(ctx, e.config.RestoreID)
		if err != nil {
			return err
		}
		if _, err := q.DeleteErasures(ctx, ids); err != nil {
			return err
		}
		return q.SetErasureLedger(ctx, db.SetErasureLedgerParams{Ledger: ledger, Position: position, Database: row.Identity})
	})
	if err != nil {
		return fmt.Errorf("attach erasure ledger: %w", err)
	}
	return nil
}

// StopErasures ends the recording and removes pending records, after the ledger was
// switched off. The database cannot be attached to the same ledger again.
func (d *DB) StopErasures(ctx context.Context) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		row, err := q.ReadErasureLedger(ctx, d.config.RestoreID)
		if err != nil {
			return err
		}
		auditTenant(ctx, q, string(audit.Installation), audit.ErasuresStop)
		return q.StopErasures(ctx, row.Identity)
	})
	if err != nil {
		return fmt.Errorf("stop recording erasures: %w", err)
	}
	return nil
}

// BeginReplay implements erasure.Store. Unfinished imports and extractions end, because they
// may contain conversations and memories that were deleted later. Sessions of platform
// administrators end, because their ends are not in the ledger.
func (e Erasures) BeginReplay(ctx context.Context) error {
	var tenants []string
	err := e.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		row, err := q.ReadErasureLedger(ctx, e.config.RestoreID)
		if err != nil {
			return err
		}
		closed, err := q.CloseErasureLedger(ctx, row.Identity)
		if err != nil {
			return err
		}
		if closed > 0 { // not when a failed replay is repeated, which may happen every second
			if err := q.SkipIDs(ctx); err != nil {
				return err
			}
		}
		if err := q.DeletePlatformSessions(ctx); err != nil {
			return err
		}
		tenants, err = q.AllTenants(ctx)
		return err
	})
	for _, id := range tenants {
		if err != nil {
			break
		}
		err = e.inTenant(ctx, tenant.ID(id), func(tx pgx.Tx, q *db.Queries) error {
			if err := q.DeletePendingExtractions(ctx, id); err != nil {
				return err
			}
			n, err := q.FailUnfinishedImports(ctx, db.FailUnfinishedImportsParams{TenantID: id, Failure: importer.ErrInterrupted.Error()})
			if err != nil || n == 0 {
				return err
			}
			// As at the end of an import, the conversations that it stored become active.
			return e.insertJob(ctx, tx, queue.Backlog, tenant.RebalanceArgs{Tenant: tenant.ID(id)})
		})
	}
	if err != nil {
		return fmt.Errorf("prepare to repeat erasures: %w", err)
	}
	return nil
}

// Replay implements erasure.Store. It deletes rows immediately; the jobs that it
// commits remove the vectors.
func (e Erasures) Replay(ctx context.Context, x erasure.Entry) error {
	if _, ok := parseID(string(x.Tenant)); !ok {
		return fault.New(fault.Invalid, "tenant %q is not a UUID", x.Tenant)
	}
	scope := tenant.JobScope(x.Tenant, x.User)
	var err error
	switch x.Kind {
	case erasure.Tenant:
		err = e.replayTenant(ctx, x.Tenant)
	case erasure.User:
		err = e.replayUser(ctx, scope)
	case erasure.Account:
		err = e.replayAccount(ctx, scope, x)
	case erasure.Conversation:
		_, err = e.Conversations().Delete(ctx, scope, x.Objects)
	case erasure.Memory:
		err = e.replayMemories(ctx, scope, x.Objects)
	case erasure.Bucket:
		err = e.replayBuckets(ctx, scope, x.Objects)
	default:
		err = e.replayRevocation(ctx, x)
	}
	if fault.Is(err, fault.NotFound) {
		return nil // created after the backup, or already erased
	}
	return err
}

// replayTenant deletes the rows. The job that it commits drops the locations and
// deletes the tenant.
func (e Erasures) replayTenant(ctx context.Context, id tenant.ID) error {
	err := e.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
		n, err := q.RepeatTenantErasure(ctx, string(id))
		if err != nil || n == 0 {
			return err
		}
		auditTenant(ctx, q, string(id), audit.TenantDelete)
		return e.insertPurge(ctx, tx, id)
	})
	if err != nil {
		return err
	}
	_, err = e.PurgeRows(ctx, id)
	return err
}

func (e Erasures) replayUser(ctx context.Context, scope tenant.Scope) error {
	err := e.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.RepeatUserErasure(ctx, db.RepeatUserErasureParams{TenantID: string(scope.Tenant), ID: int64(scope.User)})
		if err != nil || n == 0 {
			return err
		}
		appendAudit(ctx, q, scope, audit.UserDelete)
		return nil
	})
	if err != nil {
		return err
	}
	return e.PurgeUser(ctx, scope)
}

// replayAccount deletes what the account contained when it was erased, and nothing that was stored later.
func (e Erasures) replayAccount(ctx context.Context, scope tenant.Scope, x erasure.Entry) error {
	var cutoff account.PurgeCutoff
	err := e.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		var err error
		if cutoff, err = cutoffOf(ctx, q, scope, x); err != nil {
			return err
		}
		err = q.RepeatAccountErasure(ctx, db.RepeatAccountErasureParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Memory: cutoff.Memory, UpTo: cutoff.At,
		})
		if err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.AccountDelete)
		return nil
	})
	if err != nil {
		return err
	}
	_, err = account.Purge(ctx, e.Accounts(), scope, cutoff)
	return err
}

// cutoffOf returns the cutoff with which an account was erased. It returns NotFound if the user does not exist. An entry
// of an early version has no cutoff, and erases everything.
func cutoffOf(ctx context.Context, q *db.Queries, scope tenant.Scope, x erasure.Entry) (account.PurgeCutoff, error) {
	row, err := q.MarkAccount(ctx, db.MarkAccountParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return account.PurgeCutoff{}, orUnknown(err, scope.Tenant)
	}
	if x.Until == nil || len(x.Objects) != 1 {
		return account.PurgeCutoff{Memory: row.MemorySeq, At: row.At}, nil
	}
	number, err := strconv.ParseInt(x.Objects[0], 10, 64)
	if err != nil {
		return account.PurgeCutoff{}, fmt.Errorf("read number of memory: %w", err)
	}
	return account.PurgeCutoff{Memory: number, At: *x.Until}, nil
}

// replayMemories deletes memories. It first restores what is merged into them: their user did so after the backup, or
// deleted it, too, which has an entry of its own.
func (e Erasures) replayMemories(ctx context.Context, scope tenant.Scope, ids []string) error {
	m := e.Memories()
	err := e.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		q.Later().AwaitUsage(string(scope.Tenant))
		merged, err := q.LockMergedIntoOthers(ctx, db.LockMergedIntoOthersParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: parseIDs(ids)})
		if err != nil || len(merged) == 0 {
			return err
		}
		return m.unmerge(ctx, tx, q, scope, merged)
	})
	if err != nil {
		return fmt.Errorf("restore merged memories: %w", err)
	}
	_, err = m.Delete(ctx, scope, ids)
	return err
}

// replayBuckets deletes buckets. A default bucket is deleted only together with
// its account, and keeps its place here.
func (e Erasures) replayBuckets(ctx context.Context, scope tenant.Scope, ids []string) error {
	for _, s := range ids {
		id, err := strconv.ParseInt(s, 10, 64)
		if err == nil {
			_, err = e.DeleteBucket(ctx, scope, id)
		}
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}

// replayRevocation ends credentials.
func (e Erasures) replayRevocation(ctx context.Context, x erasure.Entry) error {
	id, user := string(x.Tenant), int64(x.User)
	return e.inTenant(ctx, x.Tenant, func(_ pgx.Tx, q *db.Queries) error {
		auditUser(ctx, q, id, user, audit.ErasureRepeat, string(x.Kind))
		switch x.Kind {
		case erasure.Access:
			return q.RepeatDeactivation(ctx, db.RepeatDeactivationParams{TenantID: id, ID: user})
		case erasure.Grant:
			return q.RepeatGrantRevocation(ctx, db.RepeatGrantRevocationParams{TenantID: id, UserID: user, Ids: x.Objects})
		}
		hashes, err := decodeHashes(x.Objects)
		if err != nil {
			return err
		}
		switch x.Kind {
		case erasure.Token:
			if x.Until == nil {
				return errors.New("the entry has no expiry")
			}
			if err := q.RepeatUserTokenRevocation(ctx, db.RepeatUserTokenRevocationParams{TenantID: id, Hashes: hashes, Until: x.Until}); err != nil {
				return err
			}
			return q.RepeatTokenRevocation(ctx, db.RepeatTokenRevocationParams{Hashes: hashes, Until: x.Until})
		case erasure.Password:
			return q.RepeatPasswordChange(ctx, db.RepeatPasswordChangeParams{TenantID: id, ID: user, Hashes: hashes})
		case erasure.Session:
			return q.RepeatSignOut(ctx, hashes)
		case erasure.Secret:
			return q.RepeatSecretUse(ctx, db.RepeatSecretUseParams{TenantID: id, UserID: user, Hashes: hashes})
		}
		return fault.New(fault.Invalid, "the kind %q is unknown: run a newer mnemo", x.Kind)
	})
}

func decodeHashes(in []string) ([][]byte, error) {
	out := make([][]byte, 0, len(in))
	for _, s := range in {
		hash, err := hex.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("decode hash: %w", err)
		}
		out = append(out, hash)
	}
	return out, nil
}
