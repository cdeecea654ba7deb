package apiserver

import (
	"context"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The stores below drop what they revoke from the cache of this replica before the response, also after an error, because the
// revocation may be committed. The other replicas receive a notification.

type revokingTokens struct {
	tenant.UserTokenStore
	cache *Cache
}

// RevokeUserToken implements tenant.UserTokenStore.
func (r revokingTokens) RevokeUserToken(ctx context.Context, scope tenant.Scope, id string) error {
	defer r.cache.DropUser(scope)
	return r.UserTokenStore.RevokeUserToken(ctx, scope, id)
}

type revokingUsers struct {
	tenant.ApplicationUserStore
	cache *Cache
}

// EraseApplicationUser implements tenant.ApplicationUserStore.
func (r revokingUsers) EraseApplicationUser(ctx context.Context, application tenant.Identity, name string) error {
	defer r.cache.Drop(actingHash(application.Tenant, name))
	return r.ApplicationUserStore.EraseApplicationUser(ctx, application, name)
}

type revokingAccess struct {
	tenant.AccessStore
	cache *Cache
}

// ReplaceToken implements tenant.AccessStore.
func (r revokingAccess) ReplaceToken(ctx context.Context, scope tenant.Scope, h tenant.Hash) (tenant.TokenInfo, error) {
	defer r.cache.DropUser(scope)
	return r.AccessStore.ReplaceToken(ctx, scope, h)
}

// ReplacePassword implements tenant.AccessStore.
func (r revokingAccess) ReplacePassword(ctx context.Context, scope tenant.Scope, session, password tenant.Hash) error {
	defer r.cache.DropUser(scope)
	return r.AccessStore.ReplacePassword(ctx, scope, session, password)
}

type revokingAdministration struct {
	dashboard.Administration
	cache *Cache
}

// RemoveExternalUser implements dashboard.Administration.
func (r revokingAdministration) RemoveExternalUser(ctx context.Context, id tenant.ID, email string) (int, error) {
	defer r.cache.DropTenant(id)
	return r.Administration.RemoveExternalUser(ctx, id, email)
}

type revokingGrants struct {
	oauth.GrantStore
	access oauth.AccessStore
	cache  *Cache
}

// EndGrant implements oauth.GrantStore.
func (r revokingGrants) EndGrant(ctx context.Context, scope tenant.Scope, id string) error {
	defer r.cache.DropUser(scope)
	return r.GrantStore.EndGrant(ctx, scope, id)
}

// RevokeGrant implements oauth.GrantStore.
func (r revokingGrants) RevokeGrant(ctx context.Context, client string, kind tenant.TokenKind, h tenant.Hash) error {
	defer r.dropHolder(ctx, kind, h)()
	return r.GrantStore.RevokeGrant(ctx, client, kind, h)
}

// SpendSecret implements oauth.GrantStore. It ends the grant of a secret that was used before.
func (r revokingGrants) SpendSecret(
	ctx context.Context, kind tenant.TokenKind, h tenant.Hash, check func(oauth.Grant) error, issued oauth.Issued,
) error {
	defer r.dropHolder(ctx, kind, h)()
	return r.GrantStore.SpendSecret(ctx, kind, h, check, issued)
}

// dropHolder looks up the holder of a secret while it exists, and returns the function that drops the holder's tokens:
// the cached one is another token of the same grant.
func (r revokingGrants) dropHolder(ctx context.Context, kind tenant.TokenKind, h tenant.Hash) func() {
	who, err := r.access.IdentifyHolder(ctx, kind, h)
	if err != nil {
		return func() {} // the store reports it
	}
	return func() { r.cache.DropUser(who.Scope) }
}

type revokingAccounts struct {
	account.Store
	cache *Cache
}

// BeginPurge implements account.Store.
func (r revokingAccounts) BeginPurge(ctx context.Context, scope tenant.Scope) (account.PurgeCutoff, error) {
	defer r.cache.DropUser(scope)
	return r.Store.BeginPurge(ctx, scope)
}

// revoking returns the configuration with stores that revoke in the cache, too.
func (c Config) revoking() Config {
	if c.UserTokens != nil {
		c.UserTokens = revokingTokens{c.UserTokens, c.Cache}
	}
	if c.Users != nil {
		c.Users = revokingUsers{c.Users, c.Cache}
	}
	if c.Access != nil {
		c.Access = revokingAccess{c.Access, c.Cache}
	}
	if c.Administration != nil {
		c.Administration = revokingAdministration{c.Administration, c.Cache}
	}
	if c.OAuth != nil {
		service := *c.OAuth
		service.Grants = revokingGrants{service.Grants, service.Access, c.Cache}
		c.OAuth = &service
	}
	if c.Accounts != nil {
		accounts := *c.Accounts
		accounts.Store = revokingAccounts{accounts.Store, c.Cache}
		c.Accounts = &accounts
	}
	return c
}
