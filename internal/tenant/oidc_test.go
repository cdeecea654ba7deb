package tenant_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestExternalUserName(t *testing.T) {
	t.Parallel()
	ann := tenant.ExternalUser{Issuer: "https://id.test", Subject: "1", Email: "Ann@ACME.test"}
	if got := ann.Domain(); got != "acme.test" {
		t.Errorf("domain %q, want acme.test", got)
	}
	moved := ann
	moved.Email = "ann@globex.test"
	other := ann
	other.Issuer = "https://other.test"
	if ann.UserName() != moved.UserName() {
		t.Errorf("the name changed with the address: %s became %s", ann.UserName(), moved.UserName())
	}
	if ann.UserName() == other.UserName() {
		t.Errorf("users of two issuers share the name %s", ann.UserName())
	}
}
