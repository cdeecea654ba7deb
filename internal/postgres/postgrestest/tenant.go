package postgrestest

import (
	"crypto/rand"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// ApplyTenant creates a tenant and returns the token of a user.
func ApplyTenant(t *testing.T, d Database) string {
	t.Helper()
	db, spec := Open(t, d), tenanttest.NewSpec()
	if _, err := db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	token := NewToken(t)
	credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}
	if err := db.Install(t.Context(), spec.ID, spec.Users[0].Name, credential); err != nil {
		t.Fatal(err)
	}
	return token
}

// NewToken returns a random token.
func NewToken(t *testing.T) string {
	t.Helper()
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
