package controllers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// readyWithData returns a tenant with the policy that holds something.
func (w *world) readyWithData(t *testing.T, policy v1alpha1.DeletionPolicy) *v1alpha1.Tenant {
	t.Helper()
	tn := w.newTenant("alice")
	tn.Spec.DeletionPolicy = policy
	tn = w.expectReady(t, tn)
	w.expectEvents(t, "Normal Ready")
	w.fake.Fill(tenant.ID(tn.UID), 3, 1)
	return tn
}

func (w *world) expectGone(t *testing.T) {
	t.Helper()
	w.expectMissing(t, &v1alpha1.Tenant{}, "acme")
	w.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
}

func TestDeleteRetains(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.readyWithData(t, v1alpha1.Retain)
	w.mustDelete(t, tn)
	w.expectReconciled(t)
	w.expectGone(t)
	expectEqual(t, "valid tokens", len(w.fake.Valid(tenant.ID(tn.UID), "alice")), 0)
	if !w.fake.HasPartition(placementOf(tn)) {
		t.Error("the retained partition was dropped")
	}
}

func TestDeletePurges(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.readyWithData(t, v1alpha1.Delete)
	w.mustDelete(t, tn)
	if result := w.expectReconciled(t); result.RequeueAfter != 2*time.Second {
		t.Errorf("the purge is looked at again in %v, want 2s", result.RequeueAfter)
	}
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonPurging,
		"memories 3, conversations 1 and the partition")
	expectEqual(t, "purge", w.tenant(t).Status.Purge, &v1alpha1.TenantPurge{Memories: 3, Conversations: 1, Partition: true})
	w.expectEvents(t, "Normal Purging")
	expectEqual(t, "valid tokens", len(w.fake.Valid(tenant.ID(tn.UID), "alice")), 0)
	w.expectReconciled(t)
	w.expectEvents(t)

	w.fake.Work()
	w.expectReconciled(t)
	w.expectGone(t)
	if w.fake.HasPartition(placementOf(tn)) {
		t.Error("the partition is still there")
	}
	w.expectReconciled(t) // of what is gone
}

func TestDeleteWithABackendAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy  v1alpha1.DeletionPolicy
		method  string
		err     error
		message string
	}{
		"retain, PostgreSQL": {v1alpha1.Retain, "Retire", errAway, "PostgreSQL is away"},
		"delete, PostgreSQL": {v1alpha1.Delete, "Retire", errAway, "PostgreSQL is away"},
		"delete, Milvus":     {v1alpha1.Delete, "Drop", errMilvusAway, "Milvus is away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			tn := w.readyWithData(t, test.policy)
			w.mustDelete(t, tn)
			if test.method == "Drop" {
				w.expectReconciled(t)
				w.expectEvents(t, "Normal Purging")
				w.fake.Work()
			}
			w.fake.Fail(test.err, test.method)
			for range 2 {
				if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
					t.Fatalf("Reconcile: %v, want it to be tried again", err)
				}
			}
			w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, test.message)
			w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "patch tenant acme")
			w.expectEvents(t, "Warning Unavailable deletion is blocked")

			w.fake.Heal()
			w.expectReconciled(t)
			w.fake.Work()
			w.expectReconciled(t)
			w.expectGone(t)
			expectEqual(t, "the partition is kept", w.fake.HasPartition(placementOf(tn)), test.policy == v1alpha1.Retain)
		})
	}
}

func TestDeleteWithoutIndexDoesNotNeedIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.readyWithData(t, v1alpha1.Retain)
	w.fake.Fail(errMilvusAway, "Ensure", "Drop")
	w.mustDelete(t, tn)
	w.expectReconciled(t)
	w.expectGone(t)
}

func TestPreventDeletion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.PreventDeletion = true
	tn = w.expectReady(t, tn)
	w.expectEvents(t, "Normal Ready")
	w.mustDelete(t, tn)
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonDeletionPrevented, "spec.preventDeletion")
	w.expectEvents(t, "Warning DeletionPrevented")
	w.expectReconciled(t)
	w.expectEvents(t)
	w.expectOneToken(t, "alice")

	w.mustDelete(t, w.secret(t, "acme-alice-access"))
	w.expectReconciled(t)
	w.expectMissing(t, &corev1.Secret{}, "acme-alice-access") // no repair while it ends

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.PreventDeletion = false })
	w.expectReconciled(t)
	w.expectGone(t)
}

// TestPreventDeletionOfTheNamespace: the Secrets are the namespace's, and go with
// it at once; whoever has a token keeps the access.
func TestPreventDeletionOfTheNamespace(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.PreventDeletion, tn.Spec.DeletionPolicy = true, v1alpha1.Delete
	tn = w.expectReady(t, tn)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	w.mustDelete(t, ns)
	eventually(t, func() bool {
		return !w.tenant(t).DeletionTimestamp.IsZero() && isGone(t, w.Client, secretNamed(w.ns, "acme-alice-access"))
	})
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonDeletionPrevented, "spec.preventDeletion")
	expectEqual(t, "valid tokens", len(w.fake.Valid(tenant.ID(tn.UID), "alice")), 1)
	if !w.fake.HasPartition(placementOf(tn)) {
		t.Error("the partition is gone")
	}
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.PreventDeletion = false })
	eventually(t, func() bool {
		w.expectReconciled(t)
		w.fake.Work()
		return isGone(t, w.Client, ns)
	})
	expectEqual(t, "valid tokens", len(w.fake.Valid(tenant.ID(tn.UID), "alice")), 0)
}

func TestDeleteBeforeAnythingWasMade(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	w.fake.Fail(errAway, "Apply")
	w.mustCreate(t, tn)
	if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want it to be tried again", err)
	}
	w.fake.Heal()
	w.mustDelete(t, tn)
	w.expectReconciled(t)
	w.expectGone(t)
}

// TestPlacementIsFoundBeforeItIsForgotten deletes a tenant whose status was
// never written: the partition must not stay behind.
func TestPlacementIsFoundBeforeItIsForgotten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	tn = w.expectReady(t, tn)
	placement := placementOf(tn)
	tn.Status = v1alpha1.TenantStatus{}
	if err := w.Status().Update(t.Context(), tn); err != nil {
		t.Fatalf("empty the status: %v", err)
	}
	w.mustDelete(t, tn)
	if result := w.expectReconciled(t); result.RequeueAfter == 0 {
		t.Error("the Tenant is not looked at again")
	}
	expectEqual(t, "placement", placementOf(w.tenant(t)), placement)
	w.expectReconciled(t)
	w.expectGone(t)
	if w.fake.HasPartition(placement) {
		t.Error("the partition is still there")
	}
}

// TestNoSecretInANamespaceThatEnds deletes the namespace after the Tenant was
// read and before its Secret is written.
func TestNoSecretInANamespaceThatEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.mustCreate(t, w.newTenant("alice"))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	w.fake.Before = func(method string) error {
		if method == "Apply" {
			return w.Delete(t.Context(), ns)
		}
		return nil
	}
	id := tenant.ID(w.tenant(t).UID)
	w.expectReconciled(t)
	w.fake.Heal()
	if valid := w.fake.Valid(id, "alice"); len(valid) != 0 {
		t.Errorf("%d tokens are valid that nobody was given", len(valid))
	}
	w.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
	eventually(t, func() bool {
		w.expectReconciled(t)
		return isGone(t, w.Client, ns)
	})
}
