package postgres_test

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Sign-ins of an address count until they succeed, including those with an
// identity provider.
func TestFailedSignInsCountPerAddress(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	spec := b.specs[0]
	spec.Quota.Users = 10
	spec.OIDC = tenant.OIDC{Issuer: "https://id.test", Domains: []string{"acme.test"}}
	if _, err := b.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	ann := tenant.ExternalSignIn{ExternalUser: tenant.ExternalUser{Issuer: "https://id.test", Subject: "1", Email: "ann@acme.test"}, Address: "192.0.2.1", Session: tenant.Hash{1}, Lifetime: time.Hour}
	for n := range 100 {
		if err := b.CountSignIn(t.Context(), ann.Address); err != nil {
			t.Fatalf("sign-in %d: %v", n, err)
		}
		ann.Session = tenant.Hash{1, byte(n)}
		if err := b.SignInExternal(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
	}
	eve := ann
	eve.Email = "eve@nowhere.test"
	for n := range 60 {
		if err := b.CountSignIn(t.Context(), eve.Address); err != nil {
			t.Fatalf("failed sign-in %d: %v", n, err)
		}
		wantKind(t, "sign-in of an unknown domain", b.SignInExternal(t.Context(), eve), fault.Forbidden)
	}
	wantKind(t, "one more", b.CountSignIn(t.Context(), eve.Address), fault.RateLimited)
	if err := b.CountSignIn(t.Context(), "192.0.2.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
}

// Wrong passwords from one address do not keep the account's owner out, who uses another.
func TestWrongPasswordsBlockOnlyTheirAddress(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	signIn := func(password tenant.Hash, address string) error {
		s := g.specs[0]
		g.n++
		return g.SignIn(t.Context(), tenant.SignIn{
			Name:     tenant.SignInName{Namespace: s.Namespace, Tenant: s.Name, User: g.name},
			Password: password, Address: address, Session: tenant.Hash{201, g.n}, Lifetime: time.Hour,
		})
	}
	for range 10 {
		wantKind(t, "wrong password", signIn(tenant.Hash{1}, "192.0.2.1"), fault.Unauthorized)
	}
	wantKind(t, "right password from the same address", signIn(tenant.Hash{98, 1}, "192.0.2.1"), fault.RateLimited)
	if err := signIn(tenant.Hash{98, 1}, "192.0.2.2"); err != nil {
		t.Errorf("right password from another address: %v", err)
	}
}

// Wrong codes of sign-in links reject neither passwords nor other sign-ins of their address.
func TestWrongLinksRejectNoPasswords(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	link := tenant.LinkSignIn{Link: tenant.Hash{1}, Address: "192.0.2.1", Session: tenant.Hash{2}, Lifetime: time.Hour}
	for range 60 {
		wantKind(t, "wrong link", b.SignInWithLink(t.Context(), link), fault.Unauthorized)
	}
	wantKind(t, "one more", b.SignInWithLink(t.Context(), link), fault.RateLimited)
	if err := b.CountSignIn(t.Context(), link.Address); err != nil {
		t.Errorf("another sign-in: %v", err)
	}
}
