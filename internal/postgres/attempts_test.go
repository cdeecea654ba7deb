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
