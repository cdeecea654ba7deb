package apiserver

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A cached token is rejected by the replica that revoked it, without a notification of the database.
func TestRevokedTokenIsRejectedImmediately(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	created := h.call(t, h.alice, "POST", "/api/tokens", `{"name":"laptop"}`).json(t)
	token := created["token"].(string)
	h.ok(t, token, "GET", "/api/buckets", "") // cached
	if got := h.call(t, h.alice, "DELETE", "/api/tokens/"+created["id"].(string), ""); got.status != http.StatusOK {
		t.Fatalf("DELETE: %d %s", got.status, got.body)
	}
	if got := h.call(t, token, "GET", "/api/buckets", ""); got.status != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d %s, want 401", got.status, got.body)
	}
}

// A user who was erased has no memories at the replica that erased them, and the next write creates another user, also at a
// replica that has not been notified.
func TestErasedUserIsEmptyImmediately(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	key := h.application(t, 50, tenant.AccessRead|tenant.AccessWrite|tenant.AccessAdmin)
	before, err := h.actFor(t.Context(), tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 50}, Application: &tenant.Application{}}, "ada", true)
	if err != nil {
		t.Fatal(err)
	}
	stored := h.call(t, key, "POST", "/api/memory", `{"text":"adopted a cat called Miso"}`, headerUser, "ada").json(t)["memoryId"].(string)
	if got := h.call(t, key, "GET", "/api/memories/"+stored, "", headerUser, "ada"); got.status != http.StatusOK { // cached
		t.Fatalf("GET: %d %s", got.status, got.body)
	}
	if got := h.call(t, key, "DELETE", "/api/users/ada", ""); got.status != http.StatusAccepted {
		t.Fatalf("DELETE: %d %s", got.status, got.body)
	}
	if got := h.call(t, key, "GET", "/api/memories/"+stored, "", headerUser, "ada"); got.status != http.StatusNotFound {
		t.Errorf("a memory of the erased user: %d %s, want 404", got.status, got.body)
	}
	_, epoch, _ := h.Cache.get(actingHash("one", "ada"))
	h.Cache.put(actingHash("one", "ada"), before, epoch) // as at a replica that has not been notified
	h.call(t, key, "POST", "/api/memory", `{"text":"a new one"}`, headerUser, "ada")
	after, err := h.actFor(t.Context(), tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 50}, Application: &tenant.Application{}}, "ada", false)
	if err != nil || after.User == before.User || after.User == tenant.NoUser {
		t.Errorf("the write after the erasure acts for user %d, %v, as before", after.User, err)
	}
}

// A write for a user who is erased meanwhile can be repeated.
func TestWriteDuringErasureIsRetryable(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.stores.fail(tenant.ErrUserErased)
	got := h.call(t, h.alice, "POST", "/api/memory", `{"text":"a"}`)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "tenant") {
		t.Errorf("%d %s, want 503 with Retry-After", got.status, got.body)
	}
}

// revocations are stores in which every revocation succeeds.
type revocations struct {
	tenant.UserTokenStore
	tenant.AccessStore
	oauth.GrantStore
	account.Store
	dashboard.Administration
	who tenant.Identity
}

func (revocations) RemoveExternalUser(context.Context, tenant.ID, string) (int, error) { return 1, nil }

func (revocations) RevokeUserToken(context.Context, tenant.Scope, string) error { return nil }

func (revocations) ReplaceToken(context.Context, tenant.Scope, tenant.Hash) (tenant.TokenInfo, error) {
	return tenant.TokenInfo{}, nil
}

func (revocations) ReplacePassword(context.Context, tenant.Scope, tenant.Hash, tenant.Hash) error {
	return nil
}

func (revocations) EndGrant(context.Context, tenant.Scope, string) error { return nil }

func (revocations) RevokeGrant(context.Context, string, tenant.TokenKind, tenant.Hash) error {
	return nil
}

func (revocations) SpendSecret(
	context.Context, tenant.TokenKind, tenant.Hash, func(oauth.Grant) error, oauth.Issued,
) error {
	return fault.New(fault.NotFound, "used before")
}

func (r revocations) IdentifyHolder(context.Context, tenant.TokenKind, tenant.Hash) (tenant.Identity, error) {
	return r.who, nil
}

func (revocations) BeginPurge(context.Context, tenant.Scope) (account.PurgeCutoff, error) {
	return account.PurgeCutoff{}, nil
}

// Each revocation of the API and the dashboard drops the user's tokens from the cache of the replica.
func TestRevocationsDropCachedTokens(t *testing.T) {
	t.Parallel()
	who := tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 1}}
	for name, revoke := range map[string]func(context.Context, Config) error{
		"created token": func(ctx context.Context, c Config) error {
			return c.UserTokens.RevokeUserToken(ctx, who.Scope, "id")
		},
		"token": func(ctx context.Context, c Config) error {
			_, err := c.Access.ReplaceToken(ctx, who.Scope, tenant.Hash{2})
			return err
		},
		"password": func(ctx context.Context, c Config) error {
			return c.Access.ReplacePassword(ctx, who.Scope, tenant.Hash{2}, tenant.Hash{3})
		},
		"connected app": func(ctx context.Context, c Config) error { return c.OAuth.Disconnect(ctx, who.Scope, "id") },
		"app's own grant": func(ctx context.Context, c Config) error {
			return c.OAuth.Grants.RevokeGrant(ctx, "client", tenant.RefreshToken, tenant.Hash{2})
		},
		"copied secret": func(ctx context.Context, c Config) error {
			err := c.OAuth.Grants.SpendSecret(ctx, tenant.RefreshToken, tenant.Hash{2}, nil, oauth.Issued{})
			if !fault.Is(err, fault.NotFound) {
				return err
			}
			return nil
		},
		"removed user": func(ctx context.Context, c Config) error {
			_, err := c.Administration.RemoveExternalUser(ctx, who.Tenant, "ann@example.com")
			return err
		},
		"account": func(ctx context.Context, c Config) error {
			_, err := c.Accounts.Store.BeginPurge(ctx, who.Scope)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := revocations{who: who}
			c := Config{
				Cache: NewCache(), UserTokens: stores, Access: stores, Administration: stores,
				Accounts: account.NewService(account.Config{Store: stores}),
				OAuth:    &oauth.Service{Config: oauth.Config{Grants: stores, Access: stores}},
			}.revoking()
			hash := tenant.Hash{1}
			_, epoch, _ := c.Cache.get(hash)
			c.Cache.put(hash, who, epoch)
			if err := revoke(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if _, _, ok := c.Cache.get(hash); ok {
				t.Error("a token of the user is still cached")
			}
		})
	}
}
