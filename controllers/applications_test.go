package controllers_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (e *env) newTenantWithApplication(users ...string) *v1alpha1.Tenant {
	tn := e.newTenant(users...)
	tn.Spec.Applications = []v1alpha1.TenantApplication{{Name: "web", Scopes: []v1alpha1.ApplicationScope{"read", "write"}}}
	return tn
}

// expectKey checks that the Secret's key is the only valid one of application web.
func (e *env) expectKey(t *testing.T) string {
	t.Helper()
	s := e.secret(t, "acme-web-key")
	key := string(s.Data[v1alpha1.SecretToken])
	if !tenant.KeyToken.Is(key) {
		t.Fatal("the Secret holds no key")
	}
	expectEqual(t, "valid keys", e.store.valid(e.id(t), tenant.KeyHolder("web")), []tenant.Hash{tenant.HashSecret(key)})
	expectEqual(t, "keys of the Secret", slices.Sorted(maps.Keys(s.Data)), []string{"mcpUrl", "token", "url"}) // no password
	expectEqual(t, "label", s.Labels[v1alpha1.LabelApplication], "web")
	expectEqual(t, "label of a user", s.Labels[v1alpha1.LabelUser], "")
	expectEqual(t, "status", e.tenant(t).Status.Applications, []v1alpha1.ApplicationStatus{{
		Name: "web", Secret: "acme-web-key", Fingerprint: tenant.HashSecret(key).Fingerprint(),
		TokenGeneration: e.tenant(t).Status.Applications[0].TokenGeneration, Issued: e.tenant(t).Status.Applications[0].Issued,
	}})
	return key
}

func TestApplicationKey(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenantWithApplication("web")) // a user of the same name
	e.expectEvents(t, "Normal Ready")
	first := e.expectKey(t)
	user := e.expectOneToken(t, "web")
	expectEqual(t, "users", *e.tenant(t).Status.UserCounts, v1alpha1.UserCounts{Total: 1, Ready: 1})
	e.expectNoWrites(t)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Applications[0].TokenGeneration = 2 })
	e.expectReconciled(t)
	second := e.expectKey(t)
	if second == first {
		t.Error("the key was not replaced")
	}
	e.expectEvents(t, "Normal TokenIssued issued a new key for application web: tokenGeneration was raised to 2")

	e.mustDelete(t, e.secret(t, "acme-web-key"))
	e.expectReconciled(t)
	if third := e.expectKey(t); third == second {
		t.Error("the key of a deleted Secret was issued again")
	}
	e.expectEvents(t, "Normal TokenIssued issued a new key for application web")
	expectEqual(t, "the user's token", e.expectOneToken(t, "web"), user)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Annotations = map[string]string{v1alpha1.AnnotationRotate: "today"} })
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	if fourth := e.expectKey(t); fourth == second {
		t.Error("the key was not rotated")
	}

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Applications = nil })
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, "acme-web-key")
	expectEqual(t, "valid keys", len(e.store.valid(e.id(t), tenant.KeyHolder("web"))), 0)
	expectEqual(t, "status", len(e.tenant(t).Status.Applications), 0)
}

func TestApplicationSettingsAreStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenantWithApplication()
	tn.Spec.Applications[0].AllowedOrigins, tn.Spec.Applications[0].RequestsPerMinute = []string{"https://app.acme.test"}, new(int64(9))
	e.expectReady(t, tn)
	spec, _ := e.store.spec(e.id(t))
	expectEqual(t, "spec", spec.Applications, []tenant.ApplicationSpec{{
		Name: "web", Scopes: []string{"read", "write"}, Origins: []string{"https://app.acme.test"}, RequestsPerMinute: 9,
	}})
}

// The condition and the status say why an application has no key.
func TestApplicationSecretIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "acme-web-key", errors.New("exceeded quota: secrets"))
	e.secretWrite = func(when string) error {
		if when == "before" {
			return refused
		}
		return nil
	}
	e.mustCreate(t, e.newTenantWithApplication())
	if _, err := e.settle(t); err == nil {
		t.Error("Reconcile did not return the error")
	}
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonFailed, "exceeded quota")
	if got := e.tenant(t).Status.Applications; len(got) != 1 || got[0].Secret != "" || got[0].Message == "" {
		t.Errorf("status %+v, want a message and no Secret", got)
	}
	expectEqual(t, "valid keys", len(e.store.valid(e.id(t), tenant.KeyHolder("web"))), 0)
	e.secretWrite = nil
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	e.expectKey(t)
}

func TestApplicationSecretConflict(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "acme-web-key"}})
	e.mustCreate(t, e.newTenantWithApplication())
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "acme-web-key")
}

// TestDeletedTenantWithApplication: the Secret is deleted and the key revoked.
func TestDeletedTenantWithApplication(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenantWithApplication())
	id, tn := e.id(t), e.tenant(t)
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, "acme-web-key")
	expectEqual(t, "valid keys", len(e.store.valid(id, tenant.KeyHolder("web"))), 0)
}
