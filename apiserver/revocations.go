package apiserver

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/account"
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

// ReplacePassword implements tenant.AccessStore.
func (r revokingAccess) ReplacePassword(ctx context.Context, scope tenant.Scope, session, password tenant.Hash) error {
	defer r.cache.DropUser(scope)
	return r.AccessStore.ReplacePassword(ctx, scope, session, password)
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
	if c.Accounts != nil {
		accounts := *c.Accounts
		accounts.Store = revokingAccounts{accounts.Store, c.Cache}
		c.Accounts = &accounts
	}
	return c
}
