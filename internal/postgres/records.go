package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

var _ tenant.RecordStore = (*DB)(nil)

// Records implements tenant.RecordStore.
func (d *DB) Records(ctx context.Context, of tenant.RecordsOf) ([]tenant.Record, error) {
	rows, err := db.New(d.pool).ListRecords(ctx, db.ListRecordsParams(of))
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", mapError(err))
	}
	return collect(rows, toRecord), nil
}

func toRecord(r db.ListRecordsRow) tenant.Record {
	out := tenant.Record{
		ID: tenant.ID(r.ID), Resource: tenant.ID(r.Resource), Cluster: r.Cluster, Namespace: r.Namespace, NamespaceUID: r.NamespaceUid, Name: r.Name,
		State: tenant.State(r.State), Policy: tenant.DeletionPolicy(r.DeletionPolicy),
		Usage: tenant.Usage{
			Memories: r.Memories, Conversations: r.Conversations, Blocked: r.Blocked, Storage: r.Storage, Users: r.Users,
		},
		Placement: placement.Location{Cell: r.Cell, Collection: r.Collection, Partition: r.Partition, Shared: r.Shared},
		Target:    placement.Location{Cell: r.TargetCell, Collection: r.TargetCollection, Partition: r.TargetPartition, Shared: r.TargetShared},
	}
	if r.RetiredAt != nil {
		out.RetiredAt = r.RetiredAt.UTC()
	}
	return out
}

// MarkOrphaned implements tenant.RecordStore.
func (d *DB) MarkOrphaned(ctx context.Context, id tenant.ID) error {
	return d.retireOrphan(ctx, id, false)
}

// RetireCopied is MarkOrphaned for a tenant that continues in another database, which delivers its events. Webhooks are paused
// before the first event that the other database does not have, until a Tenant adopts the data.
func (d *DB) RetireCopied(ctx context.Context, id tenant.ID) error {
	return d.retireOrphan(ctx, id, true)
}

func (d *DB) retireOrphan(ctx context.Context, id tenant.ID, copied bool) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.MarkOrphaned(ctx, string(id))
		if err != nil || n == 0 {
			return err
		}
		auditTenant(ctx, q, string(id), audit.TenantRetire)
		if _, err := q.RevokeTenantTokens(ctx, string(id)); err != nil {
			return err
		}
		if err := endAccess(ctx, q, string(id)); err != nil {
			return err
		}
		if _, err := applyDomains(ctx, q, string(id), tenant.OIDC{}); err != nil {
			return err
		}
		if err := endDeclaredWebhooks(ctx, q, string(id)); err != nil {
			return err
		}
		if copied {
			if err := q.PauseWebhooks(ctx, db.PauseWebhooksParams{TenantID: string(id), Until: webhook.PausedUntil}); err != nil {
				return err
			}
		}
		return q.NotifyTenant(ctx, string(id))
	})
	if err != nil {
		return fmt.Errorf("mark tenant as orphaned: %w", err)
	}
	return nil
}

// Revoke implements tenant.RecordStore.
func (d *DB) Revoke(ctx context.Context, id tenant.ID) (int64, error) {
	var revoked int64
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		if revoked, err = q.RevokeTenantTokens(ctx, string(id)); err != nil {
			return err
		}
		if err := q.ForgetPasswords(ctx, string(id)); err != nil {
			return err
		}
		auditTenant(ctx, q, string(id), audit.TenantRevoke)
		if err := endAccess(ctx, q, string(id)); err != nil {
			return err
		}
		if err := q.NotifyTenant(ctx, string(id)); err != nil {
			return err
		}
		return q.NotifyOperator(ctx, string(id))
	})
	if err != nil {
		return 0, fmt.Errorf("revoke tokens of tenant: %w", err)
	}
	return revoked, nil
}
