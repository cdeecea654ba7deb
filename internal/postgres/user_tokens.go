package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.UserTokenStore = (*DB)(nil)

// UserTokens implements tenant.UserTokenStore.
func (d *DB) UserTokens(ctx context.Context, scope tenant.Scope) ([]tenant.UserToken, error) {
	var out []tenant.UserToken
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		out, err = listUserTokens(ctx, q, scope)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return out, nil
}

func listUserTokens(ctx context.Context, q *db.Queries, scope tenant.Scope) ([]tenant.UserToken, error) {
	rows, err := q.ListUserTokens(ctx, db.ListUserTokensParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r db.ListUserTokensRow) tenant.UserToken {
		return tenant.UserToken{
			ID: r.ID, Name: r.Name, Access: tenant.TokenAccess(r.Scopes), Fingerprint: tenant.Hash(r.Hash).Fingerprint(),
			CreatedAt: r.CreatedAt, LastUsedAt: orZero(r.LastUsedAt), ExpiresAt: orZero(r.ExpiresAt),
		}
	}), nil
}

// UserTokenNames implements tenant.UserTokenStore.
func (d *DB) UserTokenNames(ctx context.Context, scope tenant.Scope) (map[string]string, error) {
	names := map[string]string{}
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.UserTokenNames(ctx, db.UserTokenNamesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		for _, r := range rows {
			names[tenant.Hash(r.Hash).Fingerprint()] = r.Name
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read names of tokens: %w", err)
	}
	return names, nil
}

// CreateUserToken implements tenant.UserTokenStore. The user is locked, so that concurrent
// requests neither exceed the limit nor use a name twice, and none outlives the end of the
// user's access.
func (d *DB) CreateUserToken(ctx context.Context, scope tenant.Scope, in tenant.NewUserToken) (tenant.UserToken, error) {
	var out tenant.UserToken
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		if err := lockActiveUser(ctx, q, scope); err != nil {
			return err
		}
		stored, err := listUserTokens(ctx, q, scope)
		if err != nil {
			return err
		}
		if err := tenant.CheckNewToken(stored, in.Name); err != nil {
			return err
		}
		out, err = insertUserToken(ctx, q, scope, in)
		if err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.TokenCreate, out.Fingerprint)
		return nil
	})
	if err != nil {
		return tenant.UserToken{}, fmt.Errorf("create token: %w", err)
	}
	return out, nil
}

// insertUserToken stores a token that ends no later than the credential that creates it.
func insertUserToken(ctx context.Context, q *db.Queries, scope tenant.Scope, in tenant.NewUserToken) (tenant.UserToken, error) {
	row, err := q.InsertUserToken(ctx, db.InsertUserTokenParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Hash: in.Hash[:], Name: in.Name, Scopes: in.Access.Names(),
		ExpiresAt: optionalTime(in.ExpiresAt), ExternalLife: interval(tenant.ExternalTokenLife), Creator: tenant.ActorOf(ctx).Fingerprint,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.UserToken{}, tenant.ErrCredentialEnded
	}
	if err != nil {
		return tenant.UserToken{}, err
	}
	return tenant.UserToken{
		ID: row.ID, Name: in.Name, Access: in.Access, Fingerprint: in.Hash.Fingerprint(), CreatedAt: row.CreatedAt, ExpiresAt: orZero(row.ExpiresAt),
	}, nil
}

// RevokeUserToken implements tenant.UserTokenStore.
func (d *DB) RevokeUserToken(ctx context.Context, scope tenant.Scope, id string) error {
	id, ok := parseID(id)
	if !ok {
		return tenant.ErrTokenNotFound
	}
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		revoked, err := q.RevokeUserToken(ctx, db.RevokeUserTokenParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
		if err != nil {
			return err
		}
		if len(revoked) == 0 {
			return tenant.ErrTokenNotFound
		}
		appendAudit(ctx, q, scope, audit.TokenRevoke, fingerprints(revoked)...)
		return notifyTokens(ctx, q, revoked)
	})
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}
