package tenant_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestPersonNames(t *testing.T) {
	t.Parallel()
	ann := tenant.ExternalUser{Issuer: "https://id.test", Subject: "1", Email: "Ann@ACME.test"}
	if got := ann.Domain(); got != "acme.test" {
		t.Errorf("domain %q, want acme.test", got)
	}
	moved := ann
	moved.Email = "ann@globex.test"
	other := ann
	other.Issuer = "https://other.test"
	if ann.UserName() != moved.UserName() || ann.UserName() == other.UserName() {
		t.Errorf("names %s, %s, %s: the first two must be one and the third another", ann.UserName(), moved.UserName(), other.UserName())
	}
}
