package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.ApplicationUserStore = (*DB)(nil)

// applyMembers stores the users and applications of the spec.
func (d *DB) applyMembers(ctx context.Context, tx pgx.Tx, q *db.Queries, id string, spec tenant.Spec, taken []string, removed map[string]bool) error {
	if err := d.applyUsers(ctx, tx, q, id, spec, taken, removed); err != nil {
		return err
	}
	return applyApplications(ctx, q, id, spec)
}

// applyApplications stores the listed applications. The keys of others are revoked; the
// users that they created stay, because all applications of a tenant have the same users.
func applyApplications(ctx context.Context, q *db.Queries, id string, spec tenant.Spec) error {
	stored, err := q.LockApplications(ctx, id)
	if err != nil {
		return err
	}
	missing := make(map[string]tenant.ApplicationSpec, len(spec.Applications))
	for _, a := range spec.Applications {
		missing[tenant.KeyHolder(a.Name)] = a
	}
	for _, u := range stored {
		a, listed := missing[u.Name]
		delete(missing, u.Name)
		switch {
		case listed:
			err = setApplication(ctx, q, id, u, a)
		case u.Active:
			err = endApplication(ctx, q, id, u.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, a := range spec.Applications {
		if _, ok := missing[tenant.KeyHolder(a.Name)]; !ok {
			continue
		}
		user, err := q.InsertApplication(ctx, db.InsertApplicationParams{TenantID: id, Name: tenant.KeyHolder(a.Name)})
		if err == nil {
			err = storeApplication(ctx, q, id, user, a, audit.ApplicationCreate)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setApplication updates a stored application, and activates it if it was not listed.
func setApplication(ctx context.Context, q *db.Queries, id string, u db.LockApplicationsRow, a tenant.ApplicationSpec) error {
	switch {
	case !u.Active:
		if err := q.SetUser(ctx, db.SetUserParams{TenantID: id, ID: u.ID, Active: true}); err != nil {
			return err
		}
		return storeApplication(ctx, q, id, u.ID, a, audit.ApplicationCreate)
	case equalApplication(a, db.ListApplicationsRow{Name: u.Name, Scopes: u.Scopes, AllowedOrigins: u.AllowedOrigins, RequestsPerMinute: u.RequestsPerMinute}):
		return nil
	}
	return storeApplication(ctx, q, id, u.ID, a, audit.ApplicationUpdate)
}

func storeApplication(ctx context.Context, q *db.Queries, id string, user int64, a tenant.ApplicationSpec, verb audit.Verb) error {
	err := q.SetApplication(ctx, db.SetApplicationParams{
		TenantID: id, UserID: user, Scopes: sorted(a.Scopes), AllowedOrigins: sorted(a.Origins), RequestsPerMinute: a.RequestsPerMinute,
	})
	if err != nil {
		return err
	}
	auditUser(ctx, q, id, user, verb, a.Name)
	return q.NotifyTenant(ctx, id)
}

// endApplication revokes the keys of an application that is not listed any more.
func endApplication(ctx context.Context, q *db.Queries, id string, user int64) error {
	auditUser(ctx, q, id, user, audit.ApplicationDelete)
	if err := q.SetUser(ctx, db.SetUserParams{TenantID: id, ID: user, Active: false}); err != nil {
		return err
	}
	if err := q.DeleteApplication(ctx, db.DeleteApplicationParams{TenantID: id, UserID: user}); err != nil {
		return err
	}
	if err := q.NotifyTenant(ctx, id); err != nil {
		return err
	}
	return revoke(ctx, q, db.RevokeTokensParams{TenantID: id, UserID: user, Below: everyGeneration, Overlap: interval(0)})
}

// equalApplications reports whether the stored applications are those of the spec.
func equalApplications(spec tenant.Spec, stored []db.ListApplicationsRow) bool {
	if len(spec.Applications) != len(stored) {
		return false
	}
	for _, a := range spec.Applications {
		if !slices.ContainsFunc(stored, func(s db.ListApplicationsRow) bool { return equalApplication(a, s) }) {
			return false
		}
	}
	return true
}

func equalApplication(a tenant.ApplicationSpec, stored db.ListApplicationsRow) bool {
	return tenant.KeyHolder(a.Name) == stored.Name && a.RequestsPerMinute == stored.RequestsPerMinute &&
		slices.Equal(sorted(a.Scopes), stored.Scopes) && slices.Equal(sorted(a.Origins), stored.AllowedOrigins)
}

// sorted returns a sorted copy that is not nil.
func sorted(in []string) []string {
	out := append([]string{}, in...)
	slices.Sort(out)
	return out
}

// applicationOf returns the access of a token, and the application of a key.
func applicationOf(row db.IdentifyRow) (tenant.Access, *tenant.Application) {
	switch {
	case !row.Application && row.TokenID == "":
		return tenant.FullAccess, nil
	case !row.Application:
		return tenant.TokenAccess(row.Scopes), nil
	}
	name, _ := tenant.ApplicationOf(row.UserName)
	return tenant.KeyAccess(row.Scopes), &tenant.Application{
		ID: tenant.UserID(row.UserPlacement.UserID), Name: name, Origins: row.AllowedOrigins, RequestsPerMinute: row.ApplicationRequestsPerMinute,
	}
}

// ActFor implements tenant.ApplicationUserStore. Row-level security does not apply to
// users, so the tenant is always that of the key.
func (d *DB) ActFor(ctx context.Context, key tenant.Identity, name string, create bool) (tenant.ActingUser, error) {
	acting, err := findApplicationUser(ctx, db.New(d.pool), key.Tenant, name)
	if err == nil && acting.User == tenant.NoUser && create {
		err = d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
			if err := createApplicationUser(ctx, q, string(key.Tenant), name); err != nil {
				return err
			}
			acting, err = findApplicationUser(ctx, q, key.Tenant, name)
			return err
		})
	}
	if err != nil {
		return tenant.ActingUser{}, fmt.Errorf("find the application's user: %w", mapError(err))
	}
	if acting.User == tenant.NoUser {
		acting.Placement, acting.Generation = key.Placement, key.Generation
	}
	return acting, nil
}

func findApplicationUser(ctx context.Context, q *db.Queries, id tenant.ID, name string) (tenant.ActingUser, error) {
	row, err := q.FindApplicationUser(ctx, db.FindApplicationUserParams{TenantID: string(id), Name: tenant.StoredUser(name)})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return tenant.ActingUser{}, err
	}
	return tenant.ActingUser{
		Scope:     tenant.Scope{Tenant: id, User: tenant.UserID(row.UserPlacement.UserID)}, // NoUser without a row
		Placement: locationOf(row.UserPlacement), Generation: placement.GenerationID(row.UserPlacement.GenerationID),
	}, nil
}

// createApplicationUser creates the user unless a concurrent request did, or that exceeds
// the tenant's user quota.
func createApplicationUser(ctx context.Context, q *db.Queries, id, name string) error {
	quota, err := q.LockUserQuota(ctx, id)
	if err != nil {
		return orUnknown(err, tenant.ID(id))
	}
	_, err = q.LockApplicationUser(ctx, db.LockApplicationUserParams{TenantID: id, Name: tenant.StoredUser(name)})
	if !errors.Is(err, pgx.ErrNoRows) {
		return err // it exists
	}
	if quota.Used >= quota.Users {
		return tenant.QuotaExceeded{Resource: tenant.ResourceUsers, Limit: quota.Users, Used: quota.Used}
	}
	user, err := q.InsertApplicationUser(ctx, db.InsertApplicationUserParams{TenantID: id, Name: tenant.StoredUser(name)})
	if err != nil {
		return err
	}
	auditUser(ctx, q, id, user, audit.UserCreate)
	return nil
}

// ApplicationUsers implements tenant.ApplicationUserStore.
func (d *DB) ApplicationUsers(ctx context.Context, key tenant.Identity, after string, limit int) ([]tenant.ApplicationUser, error) {
	if after != "" {
		after = tenant.StoredUser(after)
	}
	rows, err := db.New(d.pool).ListApplicationUsers(ctx, db.ListApplicationUsersParams{TenantID: string(key.Tenant), After: after, Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("list the applications' users: %w", mapError(err))
	}
	return collect(rows, func(r db.ListApplicationUsersRow) tenant.ApplicationUser {
		return tenant.ApplicationUser{Name: tenant.UserOfApplication(r.Name), Memories: r.Memories, Conversations: r.Conversations, CreatedAt: r.CreatedAt}
	}), nil
}

// ApplicationUser implements tenant.ApplicationUserStore.
func (d *DB) ApplicationUser(ctx context.Context, key tenant.Identity, name string) (tenant.ApplicationUser, error) {
	row, err := db.New(d.pool).GetApplicationUser(ctx, db.GetApplicationUserParams{TenantID: string(key.Tenant), Name: tenant.StoredUser(name)})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.ApplicationUser{}, tenant.ErrUserNotFound
	}
	if err != nil {
		return tenant.ApplicationUser{}, fmt.Errorf("read the application's user: %w", mapError(err))
	}
	return tenant.ApplicationUser{Name: name, Memories: row.Memories, Conversations: row.Conversations, CreatedAt: row.CreatedAt}, nil
}

// EraseApplicationUser implements tenant.ApplicationUserStore.
func (d *DB) EraseApplicationUser(ctx context.Context, key tenant.Identity, name string) error {
	id := string(key.Tenant)
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, id); err != nil { // which counts the users
			return orUnknown(err, key.Tenant)
		}
		user, err := q.LockApplicationUser(ctx, db.LockApplicationUserParams{TenantID: id, Name: tenant.StoredUser(name)})
		if errors.Is(err, pgx.ErrNoRows) {
			return tenant.ErrUserNotFound
		}
		if err != nil {
			return err
		}
		return d.removeUser(ctx, tx, q, id, db.LockUsersRow{ID: user}, tenant.Delete)
	})
	if err != nil {
		return fmt.Errorf("erase the application's user: %w", err)
	}
	return nil
}

// MemoryOwners implements tenant.ApplicationUserStore.
func (d *DB) MemoryOwners(ctx context.Context, key tenant.Identity, ids []string) (map[string]string, error) {
	owners := map[string]string{}
	err := d.inTenant(ctx, key.Tenant, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.MemoryOwners(ctx, db.MemoryOwnersParams{TenantID: string(key.Tenant), Ids: parseIDs(ids)})
		for _, r := range rows {
			if r.Ambiguous {
				return tenant.AmbiguousOwner(r.ID)
			}
			owners[r.ID] = tenant.UserOfApplication(r.Name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the owners of memories: %w", err)
	}
	return owners, nil
}

// AllowedOrigins implements tenant.ApplicationUserStore.
func (d *DB) AllowedOrigins(ctx context.Context) ([]string, error) {
	origins, err := db.New(d.pool).AllowedOrigins(ctx)
	if err != nil {
		return nil, fmt.Errorf("list allowed origins: %w", mapError(err))
	}
	return origins, nil
}
