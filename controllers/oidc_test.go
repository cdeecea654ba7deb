package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// TestOIDC: a domain of another Tenant is reported and adopted when it becomes free.
// The Tenant is Ready in the meantime.
func TestOIDC(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.annotateNamespace(t, v1alpha1.AnnotationOIDCDomains, "acme.test,acme.example")
	tn := e.expectReady(t, e.newTenant("alice"))
	if c := meta.FindStatusCondition(tn.Status.Conditions, v1alpha1.OIDCReady); c != nil {
		t.Errorf("without spec.oidc there is a condition %+v", c)
	}
	other := otherSpec("elsewhere", "first")
	other.OIDC = tenant.OIDC{Issuer: "https://id.test", Domains: []string{"acme.test"}}
	if _, err := e.store.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test", EmailDomains: []string{"acme.test", "acme.example"}}
	})
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionFalse, v1alpha1.ReasonDomainConflict, "another Tenant already uses acme.test")
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectEvents(t, "Normal Ready", "Warning DomainConflict")

	other.OIDC = tenant.OIDC{}
	if _, err := e.store.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, "if the installation trusts the issuer")
	got, _ := e.store.spec(tenant.ID(tn.UID))
	if diff := cmp.Diff(tenant.OIDC{Issuer: "https://id.test", Domains: []string{"acme.test", "acme.example"}}, got.OIDC); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.OIDC.EmailDomains = nil })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionFalse, v1alpha1.ReasonNoDomains, "spec.oidc.emailDomains")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.OIDC = nil })
	e.expectReconciled(t)
	if c := meta.FindStatusCondition(e.tenant(t).Status.Conditions, v1alpha1.OIDCReady); c != nil {
		t.Errorf("the condition is still present without spec.oidc: %+v", c)
	}
}

// TestManyDomains: the API server rejects an event with a note of more than 1,024 bytes.
func TestManyDomains(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test"}
	for i := range 50 {
		tn.Spec.OIDC.EmailDomains = append(tn.Spec.OIDC.EmailDomains, fmt.Sprintf("%s%02d.test", strings.Repeat("a", 240), i))
	}
	e.expectReady(t, tn)
	e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionFalse, v1alpha1.ReasonDomainNotAssigned, "04.test and 45 more: the platform administrator")
	var noted bool
	for len(e.events.Events) > 0 {
		event := <-e.events.Events
		note, ok := strings.CutPrefix(event, "Warning DomainNotAssigned ")
		if noted = noted || ok; len(note) > 1024 && ok {
			t.Errorf("the note of the event has %d bytes, want at most 1024", len(note))
		}
	}
	if !noted {
		t.Error("no event reports the domains")
	}
}

// TestAssignedDomainsAsWritten: domains are compared without case, as in DNS, and any
// space separates them, as in an annotation of several lines.
func TestAssignedDomainsAsWritten(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.annotateNamespace(t, v1alpha1.AnnotationOIDCDomains, "Acme.Test,\r\n\tacme.example")
	tn := e.newTenant("alice")
	tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test", EmailDomains: []string{"acme.test", "acme.example"}}
	e.expectReady(t, tn)
	e.expectCondition(t, v1alpha1.OIDCReady, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
}
