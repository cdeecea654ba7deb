package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ListExternalUsers returns the users of a tenant who signed in with an identity
// provider, by address, and the removed addresses.
func (d *DB) ListExternalUsers(ctx context.Context, id tenant.ID) (users []tenant.ExternalUserInfo, removed []tenant.RemovedUser, err error) {
	var rows []db.ListExternalUsersRow
	var list []db.ListRemovedRow
	err = d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
		if rows, err = q.ListExternalUsers(ctx, string(id)); err != nil {
			return err
		}
		list, err = q.ListRemoved(ctx, string(id))
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list users: %w", err)
	}
	users = collect(rows, func(r db.ListExternalUsersRow) tenant.ExternalUserInfo {
		return tenant.ExternalUserInfo{Email: r.Email, Name: r.Name, Issuer: r.Issuer, Active: r.Active, Purging: r.Purging,
			CreatedAt: r.CreatedAt, Sessions: r.Sessions, Tokens: r.Tokens}
	})
	removed = collect(list, func(r db.ListRemovedRow) tenant.RemovedUser {
		return tenant.RemovedUser{Email: r.Email, Administrator: r.Administrator, RemovedAt: r.RemovedAt}
	})
	return users, removed, nil
}

// RemoveExternalUser ends the access of the users with an address immediately, and
// rejects their sign-ins until RestoreExternalUser. The tenant's deletion policy
// decides about their data. It returns the number of users whose access ended.
func (d *DB) RemoveExternalUser(ctx context.Context, id tenant.ID, email string) (ended int, err error) {
	email = strings.ToLower(email)
	err = d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		ended = 0
		policy, err := q.TenantPolicy(ctx, string(id))
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.NotFound, "no active tenant has the ID %s", id)
		}
		if err != nil {
			return err
		}
		if _, err := q.LockUsage(ctx, string(id)); err != nil {
			return err
		}
		if _, err := q.InsertRemoved(ctx, db.InsertRemovedParams{TenantID: string(id), Administrator: true, Emails: []string{email}}); err != nil {
			return err
		}
		stored, err := q.LockUsers(ctx, string(id))
		if err != nil {
			return err
		}
		for _, u := range stored {
			if u.Issuer == nil || !u.Active || !strings.EqualFold(u.Email, email) {
				continue
			}
			if err := d.removeUser(ctx, tx, q, string(id), u, tenant.DeletionPolicy(policy)); err != nil {
				return err
			}
			ended++
		}
		return q.NotifyOperator(ctx, string(id))
	})
	if err != nil {
		return 0, fmt.Errorf("remove user: %w", err)
	}
	return ended, nil
}

// RestoreExternalUser permits the address to sign in again. NotFound unless an
// administrator removed it.
func (d *DB) RestoreExternalUser(ctx context.Context, id tenant.ID, email string) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.DeleteRemovedUser(ctx, db.DeleteRemovedUserParams{TenantID: string(id), Email: strings.ToLower(email)})
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "no administrator removed %s", email)
		}
		if err != nil {
			return err
		}
		auditTenant(ctx, q, string(id), audit.TenantReadmit)
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore user: %w", err)
	}
	return nil
}
