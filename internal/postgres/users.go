package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// everyGeneration is greater than the generation of any token.
const everyGeneration = int64(1) << 62

// applyUsers activates the listed users, up to the quota, and the external users of
// the tenant's domains. All tokens of other users are revoked. Users who are active
// stay active, even if the quota was lowered.
func (d *DB) applyUsers(ctx context.Context, tx pgx.Tx, q *db.Queries, id string, spec tenant.Spec, taken []string, removed map[string]bool) error {
	emails := make(map[string]string, len(spec.Users))
	for _, s := range spec.Users {
		emails[s.Name] = s.Email
	}
	stored, err := q.LockUsers(ctx, id)
	if err != nil {
		return err
	}
	free := spec.Quota.Users
	for _, u := range stored {
		if _, listed := emails[u.Name]; listed && u.Active {
			free--
		}
	}
	for _, u := range stored {
		email, listed := emails[u.Name]
		delete(emails, u.Name)
		switch {
		case u.Issuer != nil && accepts(spec.OIDC, taken, removed, u):
		case listed:
			err = setUser(ctx, q, id, u, email, &free)
		case u.Active:
			err = d.removeUser(ctx, tx, q, id, u, removalPolicy(spec, removed, u))
		}
		if err != nil {
			return err
		}
	}
	return insertUsers(ctx, q, id, spec.Users, emails, free)
}

// removalPolicy returns what happens to the data of a user who is no longer active.
func removalPolicy(spec tenant.Spec, removed map[string]bool, u db.LockUsersRow) tenant.DeletionPolicy {
	if u.Issuer != nil && requests(spec.OIDC, u) && !removed[strings.ToLower(u.Email)] {
		return tenant.Retain // the spec did not remove the user
	}
	return spec.DeletionPolicy
}

// setUser activates a listed user, if a place is free, and updates the email.
func setUser(ctx context.Context, q *db.Queries, id string, u db.LockUsersRow, email string, free *int64) error {
	verb := audit.UserUpdate
	switch {
	case u.Active && u.Email == email, !u.Active && *free <= 0:
		return nil
	case !u.Active:
		*free--
		verb = audit.UserActivate
	}
	if err := q.SetUser(ctx, db.SetUserParams{TenantID: id, ID: u.ID, Email: email, Active: true}); err != nil {
		return err
	}
	auditUser(ctx, q, id, u.ID, verb)
	return nil
}

// insertUsers creates the listed users who are missing, as far as places are free.
func insertUsers(ctx context.Context, q *db.Queries, id string, listed []tenant.UserSpec, missing map[string]string, free int64) error {
	for _, s := range listed {
		if _, ok := missing[s.Name]; !ok || free <= 0 {
			continue
		}
		free--
		user, err := q.InsertUser(ctx, db.InsertUserParams{TenantID: id, Name: s.Name, Email: s.Email})
		if err != nil {
			return err
		}
		auditUser(ctx, q, id, user, audit.UserCreate)
	}
	return nil
}

// readUsers returns the active listed users and the holders of applications' keys by
// name, each with its newest token.
func readUsers(ctx context.Context, q *db.Queries, id string) (users, applications []tenant.User, err error) {
	rows, err := q.ListUsers(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		u := tenant.User{ID: tenant.UserID(r.ID), Name: r.Name, Email: r.Email, Unrevoked: r.Unrevoked, PasswordReplaced: r.PasswordReplaced}
		if r.Generation > 0 {
			u.Token = &tenant.TokenInfo{Generation: r.Generation, Issuer: tenant.Issuer(r.Issuer), CreatedAt: r.CreatedAt, LastUsedAt: orZero(r.LastUsedAt)}
			if r.Valid {
				u.Token.Fingerprint = tenant.Hash(r.Hash).Fingerprint()
			}
		}
		if r.Application {
			applications = append(applications, u)
		} else {
			users = append(users, u)
		}
	}
	return users, applications, nil
}

// requireUser returns tenant.ErrUserErased if the user has been or is being erased. The transaction must hold the lock of the usage
// row, which an erasure waits for.
func requireUser(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	exists, err := q.HasUser(ctx, db.HasUserParams{TenantID: string(scope.Tenant), ID: int64(scope.User)})
	if err == nil && !exists {
		err = tenant.ErrUserErased
	}
	return err
}
