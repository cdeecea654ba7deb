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

var _ tenant.AccessStore = (*DB)(nil)

// Token implements tenant.AccessStore.
func (d *DB) Token(ctx context.Context, scope tenant.Scope) (*tenant.TokenInfo, error) {
	out, err := newestToken(ctx, db.New(d.pool), scope)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", mapError(err))
	}
	return out, nil
}

func newestToken(ctx context.Context, q *db.Queries, scope tenant.Scope) (*tenant.TokenInfo, error) {
	row, err := q.NewestToken(ctx, db.NewestTokenParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // the user never had a token
	}
	if err != nil {
		return nil, err
	}
	out := &tenant.TokenInfo{Generation: row.Generation, Issuer: tenant.Issuer(row.Issuer), CreatedAt: row.CreatedAt,
		LastUsedAt: orZero(row.LastUsedAt), ExpiresAt: orZero(row.ExpiresAt)}
	if row.Valid {
		out.Fingerprint = tenant.Hash(row.Hash).Fingerprint()
	}
	return out, nil
}

// ReplaceToken implements tenant.AccessStore.
func (d *DB) ReplaceToken(ctx context.Context, scope tenant.Scope, h tenant.Hash) (tenant.TokenInfo, error) {
	var out tenant.TokenInfo
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		id, user := string(scope.Tenant), int64(scope.User)
		if err := lockActiveUser(ctx, q, scope); err != nil {
			return err
		}
		newest, err := q.NewestGeneration(ctx, db.NewestGenerationParams{TenantID: id, UserID: user})
		if err != nil {
			return err
		}
		err = q.InsertToken(ctx, db.InsertTokenParams{
			TenantID: id, UserID: user, Generation: newest + 1, Hash: h[:], Issuer: string(tenant.IssuerUser),
			ExternalLife: interval(tenant.ExternalTokenLife),
		})
		if err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.TokenCreate, h.Fingerprint())
		err = revoke(ctx, q, db.RevokeTokensParams{TenantID: id, UserID: user, Below: newest + 1, Overlap: interval(0)})
		if err != nil {
			return err
		}
		if err := q.NotifyOperator(ctx, id); err != nil {
			return err
		}
		token, err := newestToken(ctx, q, scope)
		if token != nil {
			out = *token
		}
		return err
	})
	if err != nil {
		return tenant.TokenInfo{}, fmt.Errorf("replace token: %w", err)
	}
	return out, nil
}

// ReplacePassword implements tenant.AccessStore.
func (d *DB) ReplacePassword(ctx context.Context, scope tenant.Scope, session, password tenant.Hash) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := lockActiveUser(ctx, q, scope); err != nil {
			return err
		}
		id, user := string(scope.Tenant), int64(scope.User)
		n, err := q.ReplacePassword(ctx, db.ReplacePasswordParams{
			TenantID: id, UserID: user, Session: session[:], PasswordHash: password[:],
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return tenant.ErrSessionEnded
		}
		appendAudit(ctx, q, scope, audit.PasswordUpdate)
		if err := q.NotifyUser(ctx, db.NotifyUserParams{TenantID: id, UserID: user}); err != nil {
			return err
		}
		return q.NotifyOperator(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("replace password: %w", err)
	}
	return nil
}

// lockActiveUser locks a user who has access; Forbidden without.
func lockActiveUser(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	_, err := q.LockActiveUser(ctx, db.LockActiveUserParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.ErrNoAccess
	}
	return err
}
