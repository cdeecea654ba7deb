package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// sealBatch is the number of records sealed per transaction.
	sealBatch = 500
	// auditPage is the number of records read at a time.
	auditPage = 1000
	// sealWait is how long a transaction that seals records waits for a lock.
	sealWait = time.Second
)

var _ audit.Store = (*DB)(nil)

// appendAudit writes the audit record of a change of a user's data by the actor of the
// context, in the transaction of the change.
func appendAudit(ctx context.Context, q *db.Queries, scope tenant.Scope, verb audit.Verb, objects ...string) {
	auditUser(ctx, q, string(scope.Tenant), int64(scope.User), verb, objects...)
}

// auditTenant writes the audit record of a change of a tenant.
func auditTenant(ctx context.Context, q *db.Queries, id string, verb audit.Verb) {
	auditUser(ctx, q, id, 0, verb, id)
}

// auditUser is appendAudit for changes without a scope. User 0 is the tenant.
func auditUser(ctx context.Context, q *db.Queries, id string, user int64, verb audit.Verb, objects ...string) {
	q.Later().AppendAudit(auditRecord(ctx, id, user, verb, objects...))
}

func auditRecord(ctx context.Context, id string, user int64, verb audit.Verb, objects ...string) db.AppendAuditParams {
	a := tenant.ActorOf(ctx)
	if objects == nil {
		objects = []string{}
	}
	return db.AppendAuditParams{
		TenantID: id, UserID: user, Actor: string(a.Kind), Via: a.Via,
		Fingerprint: a.Fingerprint, App: a.App, Verb: string(verb), Objects: objects,
	}
}

// bucketID returns the id of a bucket as in audit records.
func bucketID(id int64) string { return strconv.FormatInt(id, 10) }

// fingerprints returns the fingerprints of stored hashes, for audit records.
func fingerprints(hashes [][]byte) []string {
	return collect(hashes, func(h []byte) string { return tenant.Hash(h).Fingerprint() })
}

// PendingTenants implements audit.Store.
func (d *DB) PendingTenants(ctx context.Context) ([]tenant.ID, error) {
	return d.auditTenants(ctx, false)
}

// auditTenants returns the tenants with pending records or with a chain.
func (d *DB) auditTenants(ctx context.Context, sealed bool) ([]tenant.ID, error) {
	ids, err := db.New(d.pool).AuditTenants(ctx, sealed)
	if err != nil {
		return nil, fmt.Errorf("list tenants with audit records: %w", mapError(err))
	}
	return collect(ids, func(id string) tenant.ID { return tenant.ID(id) }), nil
}

// SealRecords implements audit.Store.
func (d *DB) SealRecords(ctx context.Context, id tenant.ID, wait bool) error {
	for {
		var n int
		err := d.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
			err := limitLockWaits(ctx, tx, sealWait)
			if err == nil {
				n, err = sealRecords(ctx, q, id, wait)
			}
			return err
		})
		switch {
		case isLockTimeout(err) && wait:
			return audit.ErrSealing
		case isLockTimeout(err):
			return nil
		case err != nil:
			return fmt.Errorf("seal audit records: %w", err)
		}
		if n < sealBatch {
			return nil
		}
	}
}

// sealRecords seals a batch and returns its size. The lock of the chain orders all records
// of the tenant; a change never waits for it.
func sealRecords(ctx context.Context, q *db.Queries, id tenant.ID, wait bool) (int, error) {
	head, locked, err := lockChain(ctx, q, id, wait)
	if err != nil || !locked {
		return 0, err
	}
	pending, err := q.PendingAudit(ctx, db.PendingAuditParams{TenantID: string(id), Batch: sealBatch})
	if err != nil || len(pending) == 0 {
		return 0, err
	}
	p := db.SealAuditParams{TenantID: string(id)}
	for _, row := range pending {
		r := audit.Record{
			At: row.At, Tenant: id, User: row.Subject, Actor: row.Actor, Via: row.Via, Fingerprint: row.Fingerprint,
			App: row.App, Verb: audit.Verb(row.Verb), Objects: row.Objects,
		}
		before, err := hex.DecodeString(head.Hash)
		if err != nil {
			return 0, err
		}
		if err := head.Seal(&r); err != nil {
			return 0, err
		}
		after, err := hex.DecodeString(r.Hash)
		if err != nil {
			return 0, err
		}
		p.Ids, p.Seqs = append(p.Ids, row.ID), append(p.Seqs, r.Sequence)
		p.Prevs, p.Hashes = append(p.Prevs, before), append(p.Hashes, after)
	}
	if err := q.SealAudit(ctx, p); err != nil {
		return 0, err
	}
	if err := countChanges(ctx, q, id, pending); err != nil {
		return 0, err
	}
	return len(pending), q.ExtendAuditChain(ctx, db.ExtendAuditChainParams{
		TenantID: string(id), Seq: head.Sequence, Hash: p.Hashes[len(p.Hashes)-1],
	})
}

// lockChain locks the chain of a tenant and returns its head. Without wait, locked is
// false if another process seals its records.
func lockChain(ctx context.Context, q *db.Queries, id tenant.ID, wait bool) (head audit.Head, locked bool, err error) {
	if err := q.EnsureAuditChain(ctx, string(id)); err != nil {
		return head, false, err
	}
	if wait {
		row, err := q.LockAuditChain(ctx, string(id))
		return audit.Head{Sequence: row.Seq, Hash: hex.EncodeToString(row.Hash)}, err == nil, err
	}
	rows, err := q.TryLockAuditChain(ctx, string(id))
	if err != nil || len(rows) == 0 {
		return head, false, err
	}
	return audit.Head{Sequence: rows[0].Seq, Hash: hex.EncodeToString(rows[0].Hash)}, true, nil
}

// UserRecords implements audit.Store.
func (d *DB) UserRecords(ctx context.Context, scope tenant.Scope, after int64, limit int) ([]audit.Record, error) {
	var out []audit.Record
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		out, err = listAudit(ctx, q, scope.Tenant, after, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list audit records: %w", err)
	}
	return out, nil
}

func listAudit(ctx context.Context, q *db.Queries, id tenant.ID, after int64, limit int) ([]audit.Record, error) {
	rows, err := q.ListAudit(ctx, db.ListAuditParams{TenantID: string(id), After: after, Page: integer(limit)})
	return collect(rows, func(r db.ListAuditRow) audit.Record {
		return audit.Record{
			Sequence: r.Seq, At: r.At.UTC(), Tenant: id, User: r.Subject, Actor: r.Actor, Via: r.Via, Fingerprint: r.Fingerprint,
			App: r.App, Verb: audit.Verb(r.Verb), Objects: r.Objects,
			Previous: hex.EncodeToString(r.Prev), Hash: hex.EncodeToString(r.Hash),
		}
	}), err
}

// RecentRecords implements audit.Store.
func (d *DB) RecentRecords(ctx context.Context, scope tenant.Scope, before int64, limit int) ([]audit.Record, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var out []audit.Record
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.ListRecentAudit(ctx, db.ListRecentAuditParams{TenantID: string(scope.Tenant), Before: before, Page: integer(limit)})
		out = collect(rows, func(r db.ListRecentAuditRow) audit.Record {
			return audit.Record{
				Sequence: r.Seq, At: r.At.UTC(), Tenant: scope.Tenant, User: r.Subject, Actor: r.Actor, Via: r.Via,
				Fingerprint: r.Fingerprint, App: r.App, Verb: audit.Verb(r.Verb), Objects: r.Objects,
			}
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list recent audit records: %w", err)
	}
	return out, nil
}

// TenantRecords implements audit.Store. The head and the records are those of one snapshot, so that neither sealing nor retention
// waits for a slow reader, or changes what it reads.
func (d *DB) TenantRecords(ctx context.Context, id tenant.ID, fn func(audit.Head, iter.Seq2[audit.Record, error]) error) error {
	tx, end, err := d.beginSnapshot(ctx, id, allUsers)
	if err != nil {
		return fmt.Errorf("read audit records: %w", err)
	}
	defer end()
	q := db.New(tx)
	row, err := q.GetAuditChain(ctx, string(id))
	if errors.Is(err, pgx.ErrNoRows) {
		err = unknownTenant(id)
	}
	if err == nil {
		err = fn(audit.Head{Sequence: row.Seq, Hash: hex.EncodeToString(row.Hash)}, allAudit(ctx, q, id))
	}
	if err != nil {
		return fmt.Errorf("read audit records: %w", mapError(err))
	}
	return nil
}

// allAudit iterates over all sealed records of a tenant.
func allAudit(ctx context.Context, q *db.Queries, id tenant.ID) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for after := int64(0); ; {
			page, err := listAudit(ctx, q, id, after, auditPage)
			if err != nil {
				yield(audit.Record{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = r.Sequence
			}
			if len(page) < auditPage {
				return
			}
		}
	}
}

// RecordCommand writes the audit record of a command that changes nothing else in the
// database, such as an export or a rebuild of the index.
func (d *DB) RecordCommand(ctx context.Context, id tenant.ID, verb audit.Verb) error {
	return d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		auditTenant(ctx, q, string(id), verb)
		return nil
	})
}
