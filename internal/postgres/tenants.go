package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
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
	if out, upToDate, err := d.isUpToDate(ctx, spec); err != nil {
		return tenant.Tenant{}, fmt.Errorf("read tenant: %w", mapError(err))
	} else if upToDate {
		return out, nil
	}
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		id, created, err := d.findOrCreate(ctx, tx, q, spec)
		if err != nil {
			return err
		}
		if created {
			if err := auditCreated(ctx, q, id); err != nil {
				return err
			}
		}
		if created && spec.OIDC.Issuer == "" && len(spec.Applications) == 0 {
			out = newTenant(id, spec)
			out.Users, _, err = readUsers(ctx, q, id)
			out.RefusedUsers = spec.Refused(out.Users)
			return err
		}
		if err := d.applySettings(ctx, tx, q, id, spec); err != nil {
			return err
		}
		taken, err := applyDomains(ctx, q, id, spec.OIDC)
		if err != nil {
			return err
		}
		removed, err := applyRemoved(ctx, q, id, spec.OIDC)
		if err != nil {
			return err
		}
		if err := d.applyMembers(ctx, tx, q, id, spec, taken, removed); err != nil {
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

// isUpToDate reports whether the stored tenant equals the spec, and returns it.
// It does not lock rows: a lock is a write, and the operator applies every tenant
// once a minute.
func (d *DB) isUpToDate(ctx context.Context, spec tenant.Spec) (tenant.Tenant, bool, error) {
	q := db.New(d.pool)
	found, err := q.FindUpToDateTenant(ctx, db.FindUpToDateTenantParams{
		Resource: string(spec.ID), DisplayName: spec.DisplayName, Suspended: spec.Suspended,
		DeletionPolicy: string(spec.DeletionPolicy), Isolation: string(spec.Isolation), TokenOverlap: interval(spec.TokenOverlap),
		Cell: spec.Placement.Cell, Region: spec.Placement.Region,
		Administrators: sorted(spec.Administrators),
	})
	if err != nil || len(found) == 0 || quotaOf(found[0].Quota) != spec.Quota {
		return tenant.Tenant{}, false, err
	}
	id := found[0].ID
	out, err := readTenant(ctx, q, id, spec)
	if err != nil {
		return tenant.Tenant{}, false, err
	}
	if !equalUsers(spec, out.Users) {
		return out, false, nil
	}
	applications, err := q.ListApplications(ctx, id)
	if err != nil || !equalApplications(spec, applications) {
		return out, false, err
	}
	domains, err := q.ListDomains(ctx, id)
	if err != nil || !equalDomains(spec.OIDC, domains) {
		return out, false, err
	}
	removed, err := q.ListRemoved(ctx, id)
	return out, equalRemoved(spec.OIDC, removed), err
}

func quotaOf(q db.Quota) tenant.Quota {
	return tenant.Quota{
		Memories: q.Memories, Conversations: q.Conversations, Storage: q.Storage, Users: q.Users,
		RequestsPerMinute: q.RequestsPerMinute, PageTokens: q.PageTokens,
		UserMemories: q.UserMemories, UserConversations: q.UserConversations,
	}
}

// equalUsers reports whether the stored users are those of the spec, except for
// users over the quota.
func equalUsers(spec tenant.Spec, stored []tenant.User) bool {
	desired := make(map[string]string, len(spec.Users))
	for _, u := range spec.Users {
		desired[u.Name] = u.Email
	}
	for _, u := range stored {
		if email, listed := desired[u.Name]; !listed || email != u.Email {
			return false
		}
	}
	return len(stored) == len(desired) || int64(len(stored)) >= spec.Quota.Users
}

// equalDomains reports whether a tenant has exactly the domains of its spec.
func equalDomains(spec tenant.OIDC, stored []db.ListDomainsRow) bool {
	desired := map[db.ListDomainsRow]bool{}
	for _, d := range spec.Domains {
		desired[db.ListDomainsRow{Issuer: spec.Issuer, Domain: d}] = true
	}
	for _, d := range stored {
		if !desired[d] {
			return false
		}
	}
	return len(desired) == len(stored)
}

// equalRemoved reports whether the removals of a tenant are exactly those of its spec,
// except for those by administrators.
func equalRemoved(spec tenant.OIDC, stored []db.ListRemovedRow) bool {
	n := 0
	for _, r := range stored {
		if r.Administrator {
			continue
		}
		if n++; !slices.Contains(spec.Removed, r.Email) {
			return false
		}
	}
	return n == len(spec.Removed)
}

func createTenant(ctx context.Context, q *db.Queries, spec tenant.Spec) (string, error) {
	id, _ := parseID(string(spec.ID))
	p := db.CreateTenantParams{
		ID: id, Cluster: spec.Cluster, Namespace: spec.Namespace, NamespaceUid: &spec.NamespaceUID, Name: spec.Name, DisplayName: spec.DisplayName,
		Suspended: spec.Suspended, DeletionPolicy: string(spec.DeletionPolicy), Isolation: string(spec.Isolation),
		Cell: spec.Placement.Cell, Region: spec.Placement.Region,
		TokenOverlap: interval(spec.TokenOverlap), Administrators: sorted(spec.Administrators),
		Memories: spec.Quota.Memories, Conversations: spec.Quota.Conversations, Storage: spec.Quota.Storage,
		Users: spec.Quota.Users, RequestsPerMinute: spec.Quota.RequestsPerMinute, PageTokens: spec.Quota.PageTokens,
		UserMemories: spec.Quota.UserMemories, UserConversations: spec.Quota.UserConversations,
	}
	for _, u := range spec.Users[:min(int64(len(spec.Users)), spec.Quota.Users)] {
		p.Names, p.Emails = append(p.Names, u.Name), append(p.Emails, u.Email)
	}
	return id, q.CreateTenant(ctx, p)
}

// applySettings updates the settings and the quota of the tenant. A changed quota
// commits the job that rebalances conversations.
func (d *DB) applySettings(ctx context.Context, tx pgx.Tx, q *db.Queries, id string, spec tenant.Spec) error {
	before, err := q.UpdateTenant(ctx, db.UpdateTenantParams{
		ID: id, DisplayName: spec.DisplayName, Suspended: spec.Suspended, DeletionPolicy: string(spec.DeletionPolicy),
		Isolation: string(spec.Isolation), Cell: spec.Placement.Cell, Region: spec.Placement.Region,
		TokenOverlap: interval(spec.TokenOverlap), Administrators: sorted(spec.Administrators),
	})
	if err != nil {
		return err
	}
	changed := len(before)
	if changed > 0 {
		if err := settingsChanged(ctx, q, id, before[0], spec); err != nil {
			return err
		}
	}
	quota, err := q.SetQuota(ctx, db.SetQuotaParams{
		TenantID: id, Memories: spec.Quota.Memories, Conversations: spec.Quota.Conversations, Storage: spec.Quota.Storage,
		Users: spec.Quota.Users, RequestsPerMinute: spec.Quota.RequestsPerMinute, PageTokens: spec.Quota.PageTokens,
		UserMemories: spec.Quota.UserMemories, UserConversations: spec.Quota.UserConversations,
	})
	if err != nil {
		return err
	}
	if quota > 0 {
		auditTenant(ctx, q, id, audit.TenantQuota)
		if err := d.insertJob(ctx, tx, queue.Backlog, tenant.RebalanceArgs{Tenant: tenant.ID(id)}); err != nil {
			return err
		}
	}
	if int64(changed)+quota == 0 {
		return nil
	}
	return q.NotifyTenant(ctx, id)
}

// settingsChanged audits changed settings, and ends tokens and sessions that they no
// longer permit.
func settingsChanged(ctx context.Context, q *db.Queries, id string, suspendedBefore bool, spec tenant.Spec) error {
	auditTenant(ctx, q, id, settingsVerb(suspendedBefore, spec.Suspended))
	expired, err := q.ShortenOverlaps(ctx, db.ShortenOverlapsParams{TenantID: id, Overlap: interval(spec.TokenOverlap)})
	if err != nil {
		return err
	}
	if len(expired) > 0 {
		auditUser(ctx, q, id, 0, audit.TokenRevoke, fingerprints(expired)...)
	}
	if err := notifyTokens(ctx, q, expired); err != nil || !spec.Suspended {
		return err
	}
	return q.DeleteTenantSessions(ctx, id)
}

// settingsVerb returns the verb of a change of a tenant's settings.
func settingsVerb(suspendedBefore, suspended bool) audit.Verb {
	switch {
	case suspended && !suspendedBefore:
		return audit.TenantSuspend
	case !suspended && suspendedBefore:
		return audit.TenantResume
	}
	return audit.TenantUpdate
}

// auditCreated writes the audit records of a new tenant and its users.
func auditCreated(ctx context.Context, q *db.Queries, id string) error {
	auditTenant(ctx, q, id, audit.TenantCreate)
	users, _, err := readUsers(ctx, q, id)
	if err != nil {
		return err
	}
	for _, u := range users {
		auditUser(ctx, q, id, int64(u.ID), audit.UserCreate)
	}
	return nil
}

// newTenant returns the tenant of a spec without users and placement.
func newTenant(id string, spec tenant.Spec) tenant.Tenant {
	return tenant.Tenant{
		ID: tenant.ID(id), Namespace: spec.Namespace, Name: spec.Name, Suspended: spec.Suspended, Quota: spec.Quota,
	}
}

// readTenant returns the stored tenant after the spec was applied.
func readTenant(ctx context.Context, q *db.Queries, id string, spec tenant.Spec) (tenant.Tenant, error) {
	out := newTenant(id, spec)
	var err error
	if out.Placement, err = readPlacement(ctx, q, out.ID); err != nil {
		return out, err
	}
	if out.ExternalUsers, err = q.CountExternalUsers(ctx, id); err != nil {
		return out, err
	}
	out.Users, out.Applications, err = readUsers(ctx, q, id)
	out.RefusedUsers = spec.Refused(out.Users)
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

// ActiveTenants returns the ids of all active tenants, for the sweeper.
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

func unknownTenant(id tenant.ID) error { return fault.New(fault.NotFound, "tenant %s not found", id) }

// orUnknown maps pgx.ErrNoRows to NotFound.
func orUnknown(err error, id tenant.ID) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return unknownTenant(id)
	}
	return err
}

func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}
