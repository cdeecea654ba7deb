package controllers_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// reassign lets another namespace adopt the data of a retained tenant.
func (e *env) reassign(t *testing.T, resource types.UID, namespaceUID string) {
	t.Helper()
	record := e.record(t, tenant.ID(resource))
	if err := e.store.Reassign(t.Context(), record.ID, tenant.Owner{NamespaceUID: namespaceUID}); err != nil {
		t.Fatalf("Reassign: %v", err)
	}
}

// remember stores a memory of alice.
func (e *trustEnv) remember(t *testing.T, text string) {
	t.Helper()
	token := e.secret(t, "acme-alice-access").Data[v1alpha1.SecretToken]
	identity, err := e.db.Identify(t.Context(), tenant.HashSecret(string(token)))
	if err != nil {
		t.Fatal(err)
	}
	m := memory.NewMemory{CreateInput: memory.CreateInput{Text: text, Source: "test"}}
	if _, err = e.db.Memories().Create(t.Context(), identity.Scope, m); err != nil {
		t.Fatal(err)
	}
}

// deleteTenant deletes the Tenant acme and waits until it is removed.
func (e *env) deleteTenant(t *testing.T) {
	t.Helper()
	tn := e.tenant(t)
	e.mustDelete(t, tn)
	eventually(t, func() bool {
		e.expectReconciled(t)
		return isGone(t, e.Client, tn)
	})
}

// TestDeletedAndAppliedAgain: the same manifest works again, with the same data and
// without a change of the manifest.
func TestDeletedAndAppliedAgain(t *testing.T) {
	t.Parallel()
	for name, memories := range map[string]int{"with data": 2, "without data": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setupTrust(t, controllers.Config{})
			e.expectReady(t, e.newTenant("alice"))
			old := string(e.secret(t, "acme-alice-access").Data[v1alpha1.SecretToken])
			for i := range memories {
				e.remember(t, fmt.Sprintf("Spare key %d is under the stone.", i))
			}
			e.deleteTenant(t)
			tn := e.expectReady(t, e.newTenant("alice"))
			expectEqual(t, "memories", tn.Status.Usage.Memories.Used, int64(memories))
			if token := string(e.secret(t, "acme-alice-access").Data[v1alpha1.SecretToken]); token == old {
				t.Error("the old token was issued again")
			}
			if _, err := e.db.Identify(t.Context(), tenant.HashSecret(old)); err == nil {
				t.Error("the old token is valid again")
			}
		})
	}
}

// TestRecreatedNamespaceAdoptsNothing: the owner of a namespace that was created
// again does not get the data of the previous owner, until the platform
// administrator reassigns it.
func TestRecreatedNamespaceAdoptsNothing(t *testing.T) {
	t.Parallel()
	e := setupTrust(t, controllers.Config{})
	e.expectReady(t, e.newTenant("alice"))
	e.remember(t, "The spare key is under the stone.")
	id := tenant.ID(e.tenant(t).Status.ID)
	e.deleteTenant(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	e.mustDelete(t, ns)
	eventually(t, func() bool { return isGone(t, e.Client, ns) })
	ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	e.mustCreate(t, ns)

	e.mustCreate(t, e.newTenant("alice"))
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonAdoptionRefused,
		"mnemo tenants reassign "+e.ns+"/acme --namespace-uid "+string(ns.UID))
	e.expectCondition(t, v1alpha1.Stalled, metav1.ConditionTrue, v1alpha1.ReasonAdoptionRefused, "")
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
	e.expectNoWrites(t)

	if err := e.db.Reassign(t.Context(), id, tenant.Owner{NamespaceUID: string(ns.UID)}); err != nil {
		t.Fatal(err)
	}
	e.expectReconciled(t)
	expectEqual(t, "memories", e.tenant(t).Status.Usage.Memories.Used, 1)
}

// TestAdoptionPolicyNever: the Tenant waits while the name has data of a deleted one.
func TestAdoptionPolicyNever(t *testing.T) {
	t.Parallel()
	e := setupTrust(t, controllers.Config{})
	e.expectReady(t, e.newTenant("alice"))
	e.remember(t, "The spare key is under the stone.")
	e.deleteTenant(t)
	tn := e.newTenant("alice")
	tn.Spec.Adoption.Policy = v1alpha1.AdoptNever
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonAdoptionRequired, "set spec.adoption.policy to SameName")
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Adoption.Policy = v1alpha1.AdoptSameName })
	e.expectReconciled(t)
	expectEqual(t, "memories", e.tenant(t).Status.Usage.Memories.Used, 1)
}
