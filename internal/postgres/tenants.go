package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var (
	_ tenant.Store      = (*DB)(nil)
	_ tenant.TokenStore = (*DB)(nil)
)

// Apply implements tenant.Store.
func (d *DB) Apply(ctx context.Context, spec tenant.Spec) (tenant.Tenant, error) {
	var out tenant.Tenant
	if _, ok := parseID(string(spec.ID)); !ok {
		return out, fault.New(fault.Invalid, "tenant id %q is not a UUID", spec.ID)
	}
	if out, same, err := d.applied(ctx, spec); err != nil {
		return tenant.Tenant{}, fmt.Errorf("read tenant: %w", mapError(err))
	} else if same {
		return out, nil
	}
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		id, fresh, err := adopt(ctx, q, spec)
		if err != nil {
			return err
		}
		if fresh && spec.OIDC.Issuer == "" {
			out = asStored(id, spec)
			out.Users, err = readUsers(ctx, q, id)
			return err
		}
		if err := d.applySettings(ctx, tx, q, id, spec); err != nil {
			return err
		}
		taken, err := applyDomains(ctx, q, id, spec.OIDC)
		if err != nil {
			return err
		}
		if err := d.applyUsers(ctx, tx, q, id, spec, taken); err != nil {
			return err
		}
		out, err = readTenant(ctx, q, id, spec)
		out.DomainsTaken = taken
		return err
	})
	if err != nil {
		return tenant.Tenant{}, fmt.Errorf("apply tenant: %w", err)
	}
	return out, nil
}

// adopt finds or makes the row the spec is for, locks it and returns its id;
// fresh says that it was made.
func adopt(ctx context.Context, q *db.Queries, spec tenant.Spec) (id string, fresh bool, err error) {
	row, err := q.LockTenantByResource(ctx, string(spec.ID))
	if err == nil {
		return row.ID, false, revive(ctx, q, row, spec)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return "", false, err
	}
	named, err := q.LockTenantByName(ctx, db.LockTenantByNameParams{Cluster: spec.Cluster, Namespace: spec.Namespace, Name: spec.Name})
	switch {
	case errors.Is(err, pgx.ErrNoRows) && spec.Claim != "":
		id, err = adoptFromAfar(ctx, q, spec)
		return id, false, err
	case errors.Is(err, pgx.ErrNoRows):
		id, err = create(ctx, q, spec)
		return id, true, err
	case err != nil:
		return "", false, err
	case named.State == "purging":
		return "", false, fault.New(fault.Conflict, "the data of the deleted tenant of this name is still being purged; will be retried")
	case named.State == "retained" && (spec.Claim == tenant.ID(named.Resource) || spec.Claim == tenant.ID(named.ID)):
		return named.ID, false, q.AdoptTenant(ctx, db.AdoptTenantParams{ID: named.ID, Resource: string(spec.ID), Cluster: spec.Cluster})
	case named.State == "retained":
		return "", false, fault.New(fault.Conflict, "a deleted tenant of this name left its data: set spec.claim to %s to adopt it, or choose another name", named.Resource)
	}
	return "", false, fault.New(fault.Conflict, "the name belongs to tenant %s", named.Resource)
}

// revive makes sure that the row found for the resource is active. A retained
// one was abandoned, or its Tenant came back with a backup of the cluster.
func revive(ctx context.Context, q *db.Queries, row db.LockTenantByResourceRow, spec tenant.Spec) error {
	switch row.State {
	case "active":
		return nil
	case "retained":
		return q.AdoptTenant(ctx, db.AdoptTenantParams{ID: row.ID, Resource: row.Resource, Cluster: spec.Cluster})
	}
	return fault.New(fault.Conflict, "tenant %s is %s: it cannot be applied again", spec.ID, row.State)
}

// adoptFromAfar claims a tenant of another cluster, for one that moved here
// with a copy of its database. It must have been given up there: two clusters
// that share a database must not take one another's tenants.
func adoptFromAfar(ctx context.Context, q *db.Queries, spec tenant.Spec) (string, error) {
	claim, ok := parseID(string(spec.Claim))
	if !ok {
		return "", noneToClaim(spec)
	}
	row, err := q.LockTenantByClaim(ctx, db.LockTenantByClaimParams{
		Claim: claim, Cluster: spec.Cluster, Namespace: spec.Namespace, Name: spec.Name,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", noneToClaim(spec)
	case err != nil:
		return "", err
	case row.State == "active":
		return "", fault.New(fault.Conflict, "tenant %s belongs to cluster %s: if that cluster is gone, run `mnemo tenants retire --cluster %s`; will be retried", spec.Claim, row.Cluster, row.Cluster)
	case row.State != "retained":
		return "", fault.New(fault.Conflict, "tenant %s is %s: it cannot be claimed", spec.Claim, row.State)
	}
	return row.ID, q.AdoptTenant(ctx, db.AdoptTenantParams{ID: row.ID, Resource: string(spec.ID), Cluster: spec.Cluster})
}

func noneToClaim(spec tenant.Spec) error {
	return fault.New(fault.Conflict, "no retained tenant %s has this namespace and name: spec.claim takes the uid of a deleted Tenant of both; `mnemo tenants list --retained` lists them; if it held nothing it was purged: take spec.claim out", spec.Claim)
}

func create(ctx context.Context, q *db.Queries, spec tenant.Spec) (string, error) {
	id, _ := parseID(string(spec.ID))
	p := db.CreateTenantParams{
		ID: id, Cluster: spec.Cluster, Namespace: spec.Namespace, Name: spec.Name, DisplayName: spec.DisplayName,
		Suspended: spec.Suspended, DeletionPolicy: string(spec.DeletionPolicy), Isolation: string(spec.Isolation),
		TokenOverlap: interval(spec.TokenOverlap),
		Memories:     spec.Quota.Memories, Conversations: spec.Quota.Conversations, Storage: spec.Quota.Storage,
		Users: spec.Quota.Users, RequestsPerMinute: spec.Quota.RequestsPerMinute, ListTokens: spec.Quota.ListTokens,
		UserMemories: spec.Quota.UserMemories, UserConversations: spec.Quota.UserConversations,
	}
	for _, u := range spec.Users {
		p.Names, p.Emails = append(p.Names, u.Name), append(p.Emails, u.Email)
	}
	return id, q.CreateTenant(ctx, p)
}

// applySettings makes the tenant's row and quotas equal to the spec; a changed
// quota commits the job that re-balances conversations.
func (d *DB) applySettings(ctx context.Context, tx pgx.Tx, q *db.Queries, id string, spec tenant.Spec) error {
	changed, err := q.UpdateTenant(ctx, db.UpdateTenantParams{
		ID: id, DisplayName: spec.DisplayName, Suspended: spec.Suspended, DeletionPolicy: string(spec.DeletionPolicy),
		Isolation: string(spec.Isolation), TokenOverlap: interval(spec.TokenOverlap),
	})
	if err != nil {
		return err
	}
	if changed > 0 {
		ended, err := q.ShortenOverlaps(ctx, db.ShortenOverlapsParams{TenantID: id, Overlap: interval(spec.TokenOverlap)})
		if err != nil {
			return err
		}
		if err := tellOfTokens(ctx, q, ended); err != nil {
			return err
		}
	}
	if spec.Suspended && changed > 0 {
		if err := q.DeleteTenantSessions(ctx, id); err != nil {
			return err
		}
	}
	quota, err := q.SetQuota(ctx, db.SetQuotaParams{
		TenantID: id, Memories: spec.Quota.Memories, Conversations: spec.Quota.Conversations, Storage: spec.Quota.Storage,
		Users: spec.Quota.Users, RequestsPerMinute: spec.Quota.RequestsPerMinute, ListTokens: spec.Quota.ListTokens,
		UserMemories: spec.Quota.UserMemories, UserConversations: spec.Quota.UserConversations,
	})
	if err != nil {
		return err
	}
	if quota > 0 {
		if err := d.insertJob(ctx, tx, tenant.RebalanceArgs{Tenant: tenant.ID(id)}); err != nil {
			return err
		}
	}
	if changed+quota == 0 {
		return nil
	}
	return q.NotifyTenant(ctx, id)
}

func asStored(id string, spec tenant.Spec) tenant.Tenant {
	return tenant.Tenant{
		ID: tenant.ID(id), Namespace: spec.Namespace, Name: spec.Name, Suspended: spec.Suspended, Quota: spec.Quota,
	}
}

// readTenant returns the tenant as stored, after Apply.
func readTenant(ctx context.Context, q *db.Queries, id string, spec tenant.Spec) (tenant.Tenant, error) {
	out := asStored(id, spec)
	var err error
	if out.Placement, err = readPlacement(ctx, q, out.ID); err != nil {
		return out, err
	}
	if out.ExternalUsers, err = q.CountExternalUsers(ctx, id); err != nil {
		return out, err
	}
	out.Users, err = readUsers(ctx, q, id)
	return out, err
}

// Usage implements tenant.Store.
func (d *DB) Usage(ctx context.Context, id tenant.ID) (tenant.Usage, error) {
	row, err := db.New(d.pool).GetUsage(ctx, string(id))
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.Usage{}, unknownTenant(id)
	}
	if err != nil {
		return tenant.Usage{}, fmt.Errorf("read usage: %w", mapError(err))
	}
	return tenant.Usage{
		Memories: row.Memories, Conversations: row.Conversations, Blocked: row.Blocked, Storage: row.Storage, Users: row.Users,
	}, nil
}

// ActiveTenants returns the ids of all tenants that are neither retained nor
// being purged, for the sweeper.
func (d *DB) ActiveTenants(ctx context.Context) ([]tenant.ID, error) {
	ids, err := db.New(d.pool).ActiveTenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", mapError(err))
	}
	out := make([]tenant.ID, len(ids))
	for i, id := range ids {
		out[i] = tenant.ID(id)
	}
	return out, nil
}

func unknownTenant(id tenant.ID) error { return fault.New(fault.NotFound, "there is no tenant %s", id) }

// orUnknown turns the answer of no rows into NotFound.
func orUnknown(err error, id tenant.ID) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return unknownTenant(id)
	}
	return err
}

func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}
