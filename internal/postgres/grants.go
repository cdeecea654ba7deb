package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// keptGrants is the maximum number of grants per user; a new grant ends the
	// oldest.
	keptGrants = 50
	// keptAccess is the number of access tokens of a grant that stay valid
	// beside a new one, for requests in progress.
	keptAccess = 1
	// keptRefresh is the number of used refresh tokens of a grant that are kept
	// to detect reuse: those of two days of continuous use.
	keptRefresh = 100
)

// CreateGrant implements oauth.GrantStore.
func (d *DB) CreateGrant(ctx context.Context, scope tenant.Scope, session tenant.Hash, g oauth.Grant, code tenant.Hash, life time.Duration) error {
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		id, user := string(scope.Tenant), int64(scope.User)
		made, err := q.InsertGrant(ctx, db.InsertGrantParams{
			TenantID: id, UserID: user, Session: session[:], ClientID: g.Client, RedirectUri: g.RedirectURI, Challenge: g.Challenge,
		})
		if err != nil {
			return err
		}
		if len(made) == 0 {
			return oauth.ErrSessionEnded
		}
		err = q.InsertSecret(ctx, db.InsertSecretParams{
			Hash: code[:], TenantID: id, UserID: user, GrantID: made[0], Kind: string(tenant.Code), Life: interval(life), GrantLife: interval(oauth.GrantLife),
		})
		if err != nil {
			return err
		}
		if err := q.TidyGrants(ctx, db.TidyGrantsParams{TenantID: id, UserID: user, Kept: keptGrants}); err != nil {
			return err
		}
		if err := q.TouchClient(ctx, g.Client); err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.AppConnect, made[0], g.Client)
		return q.NotifyUser(ctx, db.NotifyUserParams{TenantID: id, UserID: user})
	})
	if err != nil {
		return fmt.Errorf("create grant: %w", err)
	}
	return nil
}

// holder returns the user whom a secret belongs to, and a context whose actor is the app
// that holds it; NotFound.
func (d *DB) holder(ctx context.Context, kind tenant.TokenKind, h tenant.Hash) (context.Context, tenant.Scope, error) {
	row, err := db.New(d.pool).HolderOf(ctx, db.HolderOfParams{Hash: h[:], Kind: string(kind)})
	if errors.Is(err, pgx.ErrNoRows) {
		return ctx, tenant.Scope{}, oauth.ErrSecretUnknown
	}
	ctx = tenant.WithActor(ctx, tenant.AppActor(h, row.App))
	return ctx, tenant.Scope{Tenant: tenant.ID(row.TenantID), User: tenant.UserID(row.UserID)}, mapError(err)
}

// SpendSecret implements oauth.GrantStore.
func (d *DB) SpendSecret(ctx context.Context, kind tenant.TokenKind, h tenant.Hash, check func(oauth.Grant) error, issued oauth.Issued) error {
	ctx, scope, err := d.holder(ctx, kind, h)
	copied := false
	if err == nil {
		err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
			var err error
			copied, err = spend(ctx, q, scope, kind, h, check, issued)
			return err
		})
	}
	if err == nil && copied {
		err = oauth.ErrSecretUnknown
	}
	if err != nil {
		return fmt.Errorf("issue tokens: %w", err)
	}
	return nil
}

// spend issues tokens for a secret that can be used once. Reuse means that the
// secret was copied, so it ends the grant for both holders. The caller must
// commit even then.
func spend(ctx context.Context, q *db.Queries, scope tenant.Scope, kind tenant.TokenKind, h tenant.Hash,
	check func(oauth.Grant) error, issued oauth.Issued,
) (copied bool, err error) {
	id, user := string(scope.Tenant), int64(scope.User)
	g, err := q.LockSecret(ctx, db.LockSecretParams{TenantID: id, UserID: user, Hash: h[:], Kind: string(kind)})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, oauth.ErrSecretUnknown
	}
	if err != nil {
		return false, err
	}
	if g.Used {
		_, err := endGrant(ctx, q, scope, g.ID)
		return true, err
	}
	if err := check(oauth.Grant{Client: g.ClientID, RedirectURI: g.RedirectUri, Challenge: g.Challenge}); err != nil {
		return false, err
	}
	if err := q.UseSecret(ctx, db.UseSecretParams{TenantID: id, UserID: user, Hash: h[:]}); err != nil {
		return false, err
	}
	err = q.TidySecrets(ctx, db.TidySecretsParams{TenantID: id, UserID: user, GrantID: g.ID, Access: keptAccess, Refresh: keptRefresh})
	if err != nil {
		return false, err
	}
	access := db.InsertSecretParams{
		Hash: issued.Access[:], TenantID: id, UserID: user, GrantID: g.ID, Kind: string(tenant.AccessToken), Life: interval(issued.AccessLife),
		GrantLife: interval(oauth.GrantLife),
	}
	if err := q.InsertSecret(ctx, access); err != nil {
		return false, err
	}
	refresh := access
	refresh.Hash, refresh.Kind, refresh.Life = issued.Refresh[:], string(tenant.RefreshToken), interval(issued.RefreshLife)
	if err := q.InsertSecret(ctx, refresh); err != nil {
		return false, err
	}
	if err := q.RefreshGrant(ctx, db.RefreshGrantParams{TenantID: id, UserID: user, ID: g.ID}); err != nil {
		return false, err
	}
	if err := q.TouchClient(ctx, g.ClientID); err != nil {
		return false, err
	}
	appendAudit(ctx, q, scope, audit.AppToken, g.ID, g.ClientID)
	return false, nil
}

// endGrant removes a grant with its secrets and notifies every replica.
func endGrant(ctx context.Context, q *db.Queries, scope tenant.Scope, id string) (ended int64, err error) {
	ended, err = q.DeleteGrant(ctx, db.DeleteGrantParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	if err != nil || ended == 0 {
		return 0, err
	}
	appendAudit(ctx, q, scope, audit.AppDisconnect, id)
	return ended, q.NotifyUser(ctx, db.NotifyUserParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
}

// endDelegated ends all grants, and the tokens that users created, of a user, or of all
// users of the tenant (0). They must be in the transaction's scope.
func endDelegated(ctx context.Context, q *db.Queries, id string, user int64) error {
	if err := q.EndUserTokens(ctx, db.EndUserTokensParams{TenantID: id, UserID: user}); err != nil {
		return err
	}
	return q.DeleteGrants(ctx, db.DeleteGrantsParams{TenantID: id, UserID: user})
}

// RevokeGrant implements oauth.GrantStore.
func (d *DB) RevokeGrant(ctx context.Context, client string, kind tenant.TokenKind, h tenant.Hash) error {
	ctx, scope, err := d.holder(ctx, kind, h)
	if err == nil {
		err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
			g, err := q.LockSecret(ctx, db.LockSecretParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Hash: h[:], Kind: string(kind)})
			if errors.Is(err, pgx.ErrNoRows) || err == nil && g.ClientID != client {
				return nil
			}
			if err == nil {
				_, err = endGrant(ctx, q, scope, g.ID)
			}
			return err
		})
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return fmt.Errorf("revoke: %w", err)
	}
	return nil
}

// ConnectedApps implements oauth.GrantStore.
func (d *DB) ConnectedApps(ctx context.Context, scope tenant.Scope) ([]oauth.ConnectedApp, error) {
	var out []oauth.ConnectedApp
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.ListGrants(ctx, db.ListGrantsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		out = collect(rows, func(r db.ListGrantsRow) oauth.ConnectedApp {
			return oauth.ConnectedApp{ID: r.ID, Client: r.ClientID, Name: r.Name, RedirectURI: r.RedirectUri, GivenAt: r.CreatedAt, RefreshedAt: r.RefreshedAt}
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return out, nil
}

// EndGrant implements oauth.GrantStore.
func (d *DB) EndGrant(ctx context.Context, scope tenant.Scope, id string) error {
	id, ok := parseID(id)
	if !ok {
		return fmt.Errorf("end grant: %w", oauth.ErrNotConnected)
	}
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		ended, err := endGrant(ctx, q, scope, id)
		if err == nil && ended == 0 {
			err = oauth.ErrNotConnected
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("end grant: %w", err)
	}
	return nil
}
