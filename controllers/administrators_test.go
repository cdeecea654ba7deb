package controllers_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// Users with the role Administrator, and addresses in spec.oidc, are stored as
// administrators.
func TestAdministratorsAreStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice", "bob")
	tn.Spec.Users[1].Role = v1alpha1.Administrator
	tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test", Administrators: []string{"ann@acme.test"}}
	e.expectReady(t, tn)
	spec, _ := e.store.spec(e.id(t))
	expectEqual(t, "administrators", spec.Administrators, []string{"bob", "ann@acme.test"})

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[1].Role, tn.Spec.OIDC = v1alpha1.Member, nil })
	e.expectReconciled(t)
	spec, _ = e.store.spec(e.id(t))
	expectEqual(t, "administrators", len(spec.Administrators), 0)
}
