package postgres

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Members returns up to limit users of the tenant after a name, in the order of their
// names, without the users of applications.
func (d *DB) Members(ctx context.Context, scope tenant.Scope, after string, limit int) ([]tenant.Member, error) {
	rows, err := db.New(d.pool).ListMembers(ctx, db.ListMembersParams{TenantID: string(scope.Tenant), After: after, Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("list members: %w", mapError(err))
	}
	return collect(rows, func(r db.ListMembersRow) tenant.Member {
		return tenant.Member{Name: r.Name, Email: r.Email, External: r.External, Administrator: r.Administrator,
			Memories: r.Memories, Conversations: r.Conversations, CreatedAt: r.CreatedAt}
	}), nil
}

// Keys returns the applications of the tenant with their keys, by name.
func (d *DB) Keys(ctx context.Context, scope tenant.Scope) ([]tenant.Key, error) {
	q, id := db.New(d.pool), string(scope.Tenant)
	applications, err := q.ListApplications(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", mapError(err))
	}
	_, holders, err := readUsers(ctx, q, id)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", mapError(err))
	}
	tokens := make(map[string]*tenant.TokenInfo, len(holders))
	for _, h := range holders {
		tokens[h.Name] = h.Token
	}
	return collect(applications, func(a db.ListApplicationsRow) tenant.Key {
		name, _ := tenant.ApplicationOf(a.Name)
		return tenant.Key{Token: tokens[a.Name], Application: tenant.ApplicationSpec{
			Name: name, Scopes: a.Scopes, Origins: a.AllowedOrigins, RequestsPerMinute: a.RequestsPerMinute,
		}}
	}), nil
}
