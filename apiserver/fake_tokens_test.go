package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakeUserTokens are the tokens that users created, newest first.
type fakeUserTokens struct{ *fakeStores }

var _ tenant.UserTokenStore = fakeUserTokens{}

func (f fakeUserTokens) UserTokens(_ context.Context, scope tenant.Scope) ([]tenant.UserToken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.tokens[scope]), f.fails
}

func (f fakeUserTokens) UserTokenNames(_ context.Context, scope tenant.Scope) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for _, t := range f.tokens[scope] {
		out[t.Fingerprint] = t.Name
	}
	return out, f.fails
}

func (f fakeUserTokens) CreateUserToken(_ context.Context, scope tenant.Scope, in tenant.NewUserToken) (tenant.UserToken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		return tenant.UserToken{}, f.fails
	}
	if err := tenant.CheckNewToken(f.tokens[scope], in.Name); err != nil {
		return tenant.UserToken{}, err
	}
	f.seq++
	t := tenant.UserToken{ID: fmt.Sprint("t-", f.seq), Name: in.Name, Access: in.Access, Fingerprint: in.Hash.Fingerprint(), CreatedAt: noon, ExpiresAt: in.ExpiresAt}
	f.tokens[scope] = slices.Insert(f.tokens[scope], 0, t)
	who := tenant.Identity{Scope: scope, Access: in.Access, Actor: tenant.TokenActor(in.Hash)}
	who.Quota.PageTokens, who.Quota.RequestsPerMinute = 25000, 1000000
	f.known[in.Hash] = who
	return t, nil
}

func (f fakeUserTokens) RevokeUserToken(_ context.Context, scope tenant.Scope, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.tokens[scope], func(t tenant.UserToken) bool { return t.ID == id })
	if i < 0 {
		return fault.New(fault.NotFound, "token not found")
	}
	revoked := f.tokens[scope][i].Fingerprint
	maps.DeleteFunc(f.known, func(h tenant.Hash, _ tenant.Identity) bool { return h.Fingerprint() == revoked })
	f.tokens[scope] = slices.Delete(f.tokens[scope], i, i+1)
	return f.fails
}
