package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// findOrCreate locks the row of the spec's resource and returns its id. If there is
// none, it adopts the retained row of the name or creates one.
func (d *DB) findOrCreate(ctx context.Context, tx pgx.Tx, q *db.Queries, spec tenant.Spec) (id string, created bool, err error) {
	row, err := q.LockTenantByResource(ctx, string(spec.ID))
	if err == nil {
		return row.ID, false, reactivate(ctx, q, row, spec)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return "", false, err
	}
	if spec.NamespaceUID == "" {
		return "", false, tenant.ErrNamespaceUIDRequired
	}
	named, err := q.LockTenantByName(ctx, db.LockTenantByNameParams{Cluster: spec.Cluster, Namespace: spec.Namespace, Name: spec.Name})
	if errors.Is(err, pgx.ErrNoRows) {
		id, err = createTenant(ctx, q, spec)
		return id, true, err
	}
	if err != nil {
		return "", false, err
	}
	owned := named.NamespaceUid == spec.NamespaceUID
	switch {
	case named.State == "purging":
		return "", false, tenant.NameConflict{Reason: tenant.NamePurging, Spec: spec}
	case named.State == "active":
		return "", false, tenant.NameConflict{Reason: tenant.NameInUse, Spec: spec, Owner: tenant.ID(named.Resource)}
	case owned && spec.Adopt:
		return named.ID, false, activateTenant(ctx, q, named.ID, string(spec.ID))
	case named.Empty:
		if err := d.deleteEmpty(ctx, tx, q, named); err != nil {
			return "", false, err
		}
		id, err = createTenant(ctx, q, spec)
		return id, true, err
	case !owned:
		return "", false, tenant.NameConflict{Reason: tenant.AdoptionRefused, Spec: spec}
	}
	return "", false, tenant.NameConflict{Reason: tenant.AdoptionRequired, Spec: spec}
}

// reactivate ensures that the row of the resource is active. A retained row was
// marked as orphaned, or its Tenant was restored from a backup of the cluster.
func reactivate(ctx context.Context, q *db.Queries, row db.LockTenantByResourceRow, spec tenant.Spec) error {
	if row.NamespaceUid == nil {
		if spec.NamespaceUID == "" {
			return tenant.ErrNamespaceUIDRequired
		}
		if err := q.SetNamespaceUID(ctx, db.SetNamespaceUIDParams{ID: row.ID, NamespaceUid: &spec.NamespaceUID}); err != nil {
			return err
		}
	}
	switch row.State {
	case "active":
		return nil
	case "retained":
		return activateTenant(ctx, q, row.ID, row.Resource)
	}
	return fault.New(fault.Conflict, "tenant %s is %s: it cannot be applied again", spec.ID, row.State)
}

// activateTenant lets the resource adopt a retained tenant.
func activateTenant(ctx context.Context, q *db.Queries, id, resource string) error {
	if err := q.ActivateTenant(ctx, db.ActivateTenantParams{ID: id, Resource: resource}); err != nil {
		return err
	}
	if err := resumeWebhooks(ctx, q, id); err != nil {
		return err
	}
	auditTenant(ctx, q, id, audit.TenantAdopt)
	return nil
}

// deleteEmpty deletes a retained tenant without data, which frees the name.
func (d *DB) deleteEmpty(ctx context.Context, tx pgx.Tx, q *db.Queries, row db.LockTenantByNameRow) error {
	retired, err := q.RetireTenant(ctx, db.RetireTenantParams{
		Resource: row.Resource, State: string(tenant.Purging), DeletionPolicy: string(tenant.Delete),
	})
	if err != nil {
		return err
	}
	if err := auditRetired(ctx, q, retired); err != nil {
		return err
	}
	return d.deletePurged(ctx, tx, q, tenant.ID(row.ID))
}

// Reassign implements tenant.RecordStore.
func (d *DB) Reassign(ctx context.Context, id tenant.ID, to tenant.Owner) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.ReassignTenant(ctx, db.ReassignTenantParams{ID: string(id), NamespaceUid: &to.NamespaceUID, Cluster: to.Cluster})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Conflict, "tenant %s is not retained", id)
		}
		auditTenant(ctx, q, string(id), audit.TenantReassign)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reassign tenant: %w", err)
	}
	return nil
}
