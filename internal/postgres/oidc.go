package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// applyDomains stores the domains of the spec that no other tenant has, and
// returns the conflicting ones: a domain belongs to the first tenant that names
// it.
func applyDomains(ctx context.Context, q *db.Queries, id string, spec tenant.OIDC) (taken []string, err error) {
	domains := slices.Compact(slices.Sorted(slices.Values(spec.Domains)))
	if spec.Issuer == "" {
		domains = nil
	}
	deleted, err := q.DeleteDomains(ctx, db.DeleteDomainsParams{TenantID: id, Issuer: spec.Issuer, Domains: domains})
	if err != nil {
		return nil, err
	}
	claimed, err := q.ClaimDomains(ctx, db.ClaimDomainsParams{TenantID: id, Issuer: spec.Issuer, Domains: domains})
	if err != nil {
		return nil, err
	}
	if deleted+claimed > 0 {
		auditTenant(ctx, q, id, audit.TenantDomains)
	}
	if len(domains) == 0 {
		return nil, nil
	}
	return q.ListTakenDomains(ctx, db.ListTakenDomainsParams{TenantID: id, Issuer: spec.Issuer, Domains: domains})
}

// applyRemoved stores the removed addresses of the spec, and returns all that are
// removed from the tenant.
func applyRemoved(ctx context.Context, q *db.Queries, id string, spec tenant.OIDC) (removed map[string]bool, err error) {
	if _, err := q.LockUsage(ctx, id); err != nil { // serializes with sign-ins
		return nil, err
	}
	if _, err := q.DeleteRemoved(ctx, db.DeleteRemovedParams{TenantID: id, Emails: spec.Removed}); err != nil {
		return nil, err
	}
	if _, err := q.InsertRemoved(ctx, db.InsertRemovedParams{TenantID: id, Emails: spec.Removed}); err != nil {
		return nil, err
	}
	rows, err := q.ListRemoved(ctx, id)
	removed = make(map[string]bool, len(rows))
	for _, r := range rows {
		removed[r.Email] = true
	}
	return removed, err
}

// accepts reports whether the tenant accepts the identity of an external user.
func accepts(spec tenant.OIDC, taken []string, removed map[string]bool, u db.LockUsersRow) bool {
	domain := tenant.ExternalUser{Email: u.Email}.Domain()
	return !removed[strings.ToLower(u.Email)] && *u.Issuer == spec.Issuer && slices.Contains(spec.Domains, domain) && !slices.Contains(taken, domain)
}

// requests reports whether the spec asks for the domain of an external user, even
// if the tenant does not have it.
func requests(spec tenant.OIDC, u db.LockUsersRow) bool {
	domain := tenant.ExternalUser{Email: u.Email}.Domain()
	return *u.Issuer == spec.Issuer && (slices.Contains(spec.Domains, domain) || slices.Contains(spec.Unassigned, domain))
}

// ensureExternalUser returns the user, and creates it at the first sign-in
// unless that exceeds the tenant's user quota.
func ensureExternalUser(ctx context.Context, q *db.Queries, owner db.LockDomainOwnerRow, p tenant.ExternalUser) (int64, error) {
	u, err := q.LockExternalUser(ctx, db.LockExternalUserParams{TenantID: owner.ID, Issuer: p.Issuer, Subject: p.Subject})
	known := err == nil
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return 0, err
	case known && u.Purging:
		return 0, tenant.ErrPurging
	case known && u.Active && u.Email == p.Email:
		return u.ID, nil
	}
	if known {
		// The provider may have changed the address of a removed user.
		if err := rejectRemoved(ctx, q, owner.ID, u.Email); err != nil {
			return 0, err
		}
	}
	if !known || !u.Active {
		if err := reserveUser(ctx, q, owner); err != nil {
			return 0, err
		}
	}
	if known {
		return u.ID, activateUser(ctx, q, owner.ID, u, p.Email)
	}
	id, err := q.InsertExternalUser(ctx, db.InsertExternalUserParams{
		TenantID: owner.ID, Name: p.UserName(), Email: p.Email, Issuer: p.Issuer, Subject: p.Subject,
	})
	if err != nil {
		return 0, err
	}
	auditUser(ctx, q, owner.ID, id, audit.UserCreate)
	return id, nil
}

// reserveUser checks the quota for one more active user and notifies the operator,
// which reports the usage.
func reserveUser(ctx context.Context, q *db.Queries, owner db.LockDomainOwnerRow) error {
	n, err := q.CountUsers(ctx, owner.ID)
	if err != nil {
		return err
	}
	if n >= owner.Users {
		return tenant.QuotaExceeded{Resource: tenant.ResourceUsers, Limit: owner.Users, Used: n}
	}
	return q.NotifyOperator(ctx, owner.ID)
}

// activateUser sets the address of an existing user, who is active afterwards.
func activateUser(ctx context.Context, q *db.Queries, id string, u db.LockExternalUserRow, email string) error {
	verb := audit.UserUpdate
	if !u.Active {
		verb = audit.UserActivate
	}
	if err := q.SetUser(ctx, db.SetUserParams{TenantID: id, ID: u.ID, Email: email, Active: true}); err != nil {
		return err
	}
	auditUser(ctx, q, id, u.ID, verb)
	return nil
}

// rejectRemoved returns Forbidden for the address of a removed user.
func rejectRemoved(ctx context.Context, q *db.Queries, id, email string) error {
	removed, err := q.IsRemoved(ctx, db.IsRemovedParams{TenantID: id, Emails: []string{strings.ToLower(email)}})
	if err == nil && removed {
		err = tenant.ErrAccessRemoved
	}
	return err
}

// SignInExternal implements tenant.SessionStore.
func (d *DB) SignInExternal(ctx context.Context, s tenant.ExternalSignIn) error {
	actor := tenant.SessionActor(s.Session)
	actor.Via = tenant.ViaProvider
	ctx = tenant.WithActor(ctx, actor)
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := q.ExpireSessions(ctx); err != nil {
			return err
		}
		owner, err := q.LockDomainOwner(ctx, db.LockDomainOwnerParams{Issuer: s.Issuer, Domain: s.Domain()})
		if errors.Is(err, pgx.ErrNoRows) {
			return tenant.SignInNotEnabled(s.Domain())
		}
		if err != nil {
			return err
		}
		if owner.Suspended {
			return tenant.ErrSuspended
		}
		if err := rejectRemoved(ctx, q, owner.ID, s.Email); err != nil {
			return err
		}
		user, err := ensureExternalUser(ctx, q, owner, s.ExternalUser)
		if err != nil {
			return err
		}
		err = q.InsertExternalSession(ctx, db.InsertExternalSessionParams{
			Hash: s.Session[:], TenantID: owner.ID, UserID: user, Lifetime: interval(s.Lifetime), AuthenticatedAt: optionalTime(s.AuthenticatedAt),
		})
		if err != nil {
			return err
		}
		auditUser(ctx, q, owner.ID, user, audit.SessionCreate, actor.Fingerprint)
		return nil
	})
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	d.forgive(ctx, attemptKey("address", s.Address), nil)
	return nil
}
