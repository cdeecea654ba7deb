package postgres

import (
	"context"
	"maps"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// applied returns the tenant when it is stored as the spec says, and false
// when it is not. It locks nothing: a lock is a write, and the operator asks
// this of every tenant every minute.
func (d *DB) applied(ctx context.Context, spec tenant.Spec) (tenant.Tenant, bool, error) {
	q := db.New(d.pool)
	ids, err := q.FindApplied(ctx, db.FindAppliedParams{
		Resource: string(spec.ID), DisplayName: spec.DisplayName, Suspended: spec.Suspended,
		DeletionPolicy: string(spec.DeletionPolicy), Isolation: string(spec.Isolation), TokenOverlap: interval(spec.TokenOverlap),
		Memories: spec.Quota.Memories, Conversations: spec.Quota.Conversations, Storage: spec.Quota.Storage,
		Users: spec.Quota.Users, RequestsPerMinute: spec.Quota.RequestsPerMinute, ListTokens: spec.Quota.ListTokens,
		UserMemories: spec.Quota.UserMemories, UserConversations: spec.Quota.UserConversations,
	})
	if err != nil || len(ids) == 0 {
		return tenant.Tenant{}, false, err
	}
	out, err := readTenant(ctx, q, ids[0], spec)
	if err != nil {
		return tenant.Tenant{}, false, err
	}
	asked, stored := map[string]string{}, map[string]string{}
	for _, u := range spec.Users {
		asked[u.Name] = u.Email
	}
	for _, u := range out.Users {
		stored[u.Name] = u.Email
	}
	if !maps.Equal(asked, stored) {
		return out, false, nil
	}
	domains, err := q.DomainsOf(ctx, ids[0])
	return out, sameDomains(spec.OIDC, domains), err
}

// sameDomains reports whether a tenant has just the domains it asks for.
func sameDomains(spec tenant.OIDC, stored []db.DomainsOfRow) bool {
	asked := map[db.DomainsOfRow]bool{}
	for _, d := range spec.Domains {
		asked[db.DomainsOfRow{Issuer: spec.Issuer, Domain: d}] = true
	}
	for _, d := range stored {
		if !asked[d] {
			return false
		}
	}
	return len(asked) == len(stored)
}
