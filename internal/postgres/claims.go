package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// findOrCreate locks the row of the spec's resource and returns its id. If there is
// none, it adopts the claimed row or creates one.
func findOrCreate(ctx context.Context, q *db.Queries, spec tenant.Spec) (id string, created bool, err error) {
	row, err := q.LockTenantByResource(ctx, string(spec.ID))
	if err == nil {
		return row.ID, false, reactivate(ctx, q, row, spec)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return "", false, err
	}
	named, err := q.LockTenantByName(ctx, db.LockTenantByNameParams{Cluster: spec.Cluster, Namespace: spec.Namespace, Name: spec.Name})
	switch {
	case errors.Is(err, pgx.ErrNoRows) && spec.Claim != "":
		id, err = adoptFromCluster(ctx, q, spec)
		return id, false, err
	case errors.Is(err, pgx.ErrNoRows):
		id, err = createTenant(ctx, q, spec)
		return id, true, err
	case err != nil:
		return "", false, err
	case named.State == "purging":
		return "", false, fault.New(fault.Conflict, "the data of the deleted tenant of this name is still being purged; will be retried")
	case named.State == "retained" && (spec.Claim == tenant.ID(named.Resource) || spec.Claim == tenant.ID(named.ID)):
		return named.ID, false, q.AdoptTenant(ctx, db.AdoptTenantParams{ID: named.ID, Resource: string(spec.ID), Cluster: spec.Cluster})
	case named.State == "retained":
		return "", false, fault.New(fault.Conflict, "the data of a deleted tenant of this name is retained: set spec.claim to %s to adopt it, or choose another name", named.Resource)
	}
	return "", false, fault.New(fault.Conflict, "the name belongs to tenant %s", named.Resource)
}

// reactivate ensures that the row of the resource is active. A retained row was
// marked as orphaned, or its Tenant was restored from a backup of the cluster.
func reactivate(ctx context.Context, q *db.Queries, row db.LockTenantByResourceRow, spec tenant.Spec) error {
	switch row.State {
	case "active":
		return nil
	case "retained":
		return q.AdoptTenant(ctx, db.AdoptTenantParams{ID: row.ID, Resource: row.Resource, Cluster: spec.Cluster})
	}
	return fault.New(fault.Conflict, "tenant %s is %s: it cannot be applied again", spec.ID, row.State)
}

// adoptFromCluster adopts a tenant of another cluster, for tenants that are
// migrated with a copy of their database. The tenant must be retained: clusters that
// share a database must not adopt each other's active tenants.
func adoptFromCluster(ctx context.Context, q *db.Queries, spec tenant.Spec) (string, error) {
	claim, ok := parseID(string(spec.Claim))
	if !ok {
		return "", claimNotFound(spec)
	}
	row, err := q.LockTenantByClaim(ctx, db.LockTenantByClaimParams{
		Claim: claim, Cluster: spec.Cluster, Namespace: spec.Namespace, Name: spec.Name,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", claimNotFound(spec)
	case err != nil:
		return "", err
	case row.State == "active":
		return "", fault.New(fault.Conflict, "tenant %s belongs to cluster %s: if that cluster is gone, run `mnemo tenants retire --cluster %s`; will be retried", spec.Claim, row.Cluster, row.Cluster)
	case row.State != "retained":
		return "", fault.New(fault.Conflict, "tenant %s is %s: it cannot be claimed", spec.Claim, row.State)
	}
	return row.ID, q.AdoptTenant(ctx, db.AdoptTenantParams{ID: row.ID, Resource: string(spec.ID), Cluster: spec.Cluster})
}

func claimNotFound(spec tenant.Spec) error {
	return fault.New(fault.Conflict, "no retained tenant %s has this namespace and name: spec.claim must be the uid of a deleted Tenant with the same namespace and name; `mnemo tenants list --retained` lists them; a tenant without data was purged: remove spec.claim", spec.Claim)
}
