package controllers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// readyWithData returns a Ready tenant with the policy and some data.
func (e *env) readyWithData(t *testing.T, policy v1alpha1.DeletionPolicy) *v1alpha1.Tenant {
	t.Helper()
	tn := e.newTenant("alice")
	tn.Spec.DeletionPolicy = policy
	tn = e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	e.store.fill(tenant.ID(tn.UID), 3, 1)
	return tn
}

func (e *env) expectGone(t *testing.T) {
	t.Helper()
	e.expectMissing(t, &v1alpha1.Tenant{}, "acme")
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
}

func TestDeleteRetains(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.readyWithData(t, v1alpha1.Retain)
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectGone(t)
	expectEqual(t, "valid tokens", len(e.store.valid(tenant.ID(tn.UID), "alice")), 0)
	if !e.store.index.HasPartition(placementOf(tn)) {
		t.Error("the retained partition was dropped")
	}
}

func TestDeletePurges(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.readyWithData(t, v1alpha1.Delete)
	e.mustDelete(t, tn)
	expectEqual(t, "result", e.expectReconciled(t), ctrl.Result{RequeueAfter: 2 * time.Second, Priority: new(-1)}) // after other Tenants
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonPurging,
		"memories 3, conversations 1 and the partition")
	expectEqual(t, "purge", e.tenant(t).Status.Purge, &v1alpha1.TenantPurge{Memories: 3, Conversations: 1, Partition: true})
	e.expectEvents(t, "Normal Purging")
	expectEqual(t, "valid tokens", len(e.store.valid(tenant.ID(tn.UID), "alice")), 0)
	e.expectReconciled(t)
	e.expectEvents(t)

	e.store.work()
	e.expectReconciled(t)
	e.expectGone(t)
	if e.store.index.HasPartition(placementOf(tn)) {
		t.Error("the partition was not dropped")
	}
	e.expectReconciled(t) // of what is gone
}

// A purge that keeps failing says why, and is reported as failed until it succeeds.
func TestDeleteReportsFailingPurge(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.readyWithData(t, v1alpha1.Delete)
	e.mustDelete(t, tn)
	e.store.PurgeFailure = tenant.PurgeFailure{Attempts: 3, Job: 17, SQLState: "54001"}
	e.expectReconciled(t)
	for _, part := range []string{"memories 3", "3 attempts failed", "PostgreSQL error 54001", "job 17"} {
		e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonFailed, part)
	}
	e.store.PurgeFailure = tenant.PurgeFailure{}
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonPurging, "memories 3")
	e.store.work()
	e.expectReconciled(t)
	e.expectGone(t)
}

func TestDeleteWithAnUnavailableStore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy  v1alpha1.DeletionPolicy
		method  string
		err     error
		message string
	}{
		"retain, PostgreSQL": {v1alpha1.Retain, "Retire", errPostgresUnavailable, "PostgreSQL is unavailable"},
		"delete, PostgreSQL": {v1alpha1.Delete, "Retire", errPostgresUnavailable, "PostgreSQL is unavailable"},
		"delete, Milvus":     {v1alpha1.Delete, "Drop", errMilvusUnavailable, "Milvus is unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tn := e.readyWithData(t, test.policy)
			e.mustDelete(t, tn)
			if test.method == "Drop" {
				e.expectReconciled(t)
				e.expectEvents(t, "Normal Purging")
			}
			e.store.fail(test.err, test.method)
			e.store.work() // purges the rows
			for range 2 {
				if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
					t.Fatalf("Reconcile: got error %v, want Unavailable", err)
				}
			}
			e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, test.message)
			e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "patch tenant acme")
			e.expectEvents(t, "Warning Unavailable deletion is blocked")

			e.store.heal()
			e.expectReconciled(t)
			e.store.work()
			e.expectReconciled(t)
			e.expectGone(t)
			expectEqual(t, "the partition is kept", e.store.index.HasPartition(placementOf(tn)), test.policy == v1alpha1.Retain)
		})
	}
}

func TestRetainDoesNotNeedTheIndex(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.readyWithData(t, v1alpha1.Retain)
	e.store.fail(errMilvusUnavailable, "Ensure", "Drop")
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectGone(t)
}

func TestPreventDeletion(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.PreventDeletion = true
	tn = e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonDeletionPrevented, "spec.preventDeletion")
	e.expectEvents(t, "Warning DeletionPrevented")
	e.expectReconciled(t)
	e.expectEvents(t)
	e.expectOneToken(t, "alice")

	e.mustDelete(t, e.secret(t, "acme-alice-access"))
	e.expectReconciled(t)
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access") // no repair while it ends

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.PreventDeletion = false })
	e.expectReconciled(t)
	e.expectGone(t)
}

// TestPreventDeletionOfTheNamespace: Kubernetes deletes the Secrets with the
// namespace, but their tokens stay valid.
func TestPreventDeletionOfTheNamespace(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.PreventDeletion, tn.Spec.DeletionPolicy = true, v1alpha1.Delete
	tn = e.expectReady(t, tn)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	e.mustDelete(t, ns)
	eventually(t, func() bool {
		return !e.tenant(t).DeletionTimestamp.IsZero() && isGone(t, e.Client, secretNamed(e.ns, "acme-alice-access"))
	})
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonDeletionPrevented, "spec.preventDeletion")
	expectEqual(t, "valid tokens", len(e.store.valid(tenant.ID(tn.UID), "alice")), 1)
	if !e.store.index.HasPartition(placementOf(tn)) {
		t.Error("the partition was dropped")
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.PreventDeletion = false })
	eventually(t, func() bool {
		e.expectReconciled(t)
		e.store.work()
		return isGone(t, e.Client, ns)
	})
	expectEqual(t, "valid tokens", len(e.store.valid(tenant.ID(tn.UID), "alice")), 0)
}

func TestDeleteBeforeAnythingWasStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	e.store.fail(errPostgresUnavailable, "Apply")
	e.mustCreate(t, tn)
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.store.heal()
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectGone(t)
}

// TestDeletionIgnoresTheStatus: the stores are asked by the Tenant's uid, because
// an author with the right to write the status could name the data of another tenant.
func TestDeletionIgnoresTheStatus(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(status, other *v1alpha1.TenantStatus){
		"empty": func(status, _ *v1alpha1.TenantStatus) { *status = v1alpha1.TenantStatus{} },
		"of another tenant": func(status, other *v1alpha1.TenantStatus) {
			status.ID, status.Placement = other.ID, other.Placement
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, victim := setup(t), setup(t)
			victim.store = e.store
			victim.use(t, controllers.Config{})
			other := victim.readyWithData(t, v1alpha1.Retain)
			tn := e.readyWithData(t, v1alpha1.Delete)
			own := placementOf(tn)
			forge(&tn.Status, &other.Status)
			if err := e.Status().Update(t.Context(), tn); err != nil {
				t.Fatalf("forge the status: %v", err)
			}
			e.mustDelete(t, tn)
			e.expectReconciled(t)
			e.store.work()
			e.expectReconciled(t)
			e.expectGone(t)
			if e.store.index.HasPartition(own) {
				t.Error("the partition was not dropped")
			}
			if !e.store.index.HasPartition(placementOf(other)) {
				t.Error("the partition of the other tenant was dropped")
			}
			victim.expectOneToken(t, "alice")
		})
	}
}

// TestNoSecretInATerminatingNamespace deletes the namespace after the Tenant was
// read and before its Secret is written.
func TestNoSecretInATerminatingNamespace(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	e.store.failIf(func(method string) error {
		if method == "Apply" {
			return e.Delete(t.Context(), ns)
		}
		return nil
	})
	id := tenant.ID(e.tenant(t).UID)
	e.expectReconciled(t)
	e.store.heal()
	if valid := e.store.valid(id, "alice"); len(valid) != 0 {
		t.Errorf("%d tokens are valid that were never published, want none", len(valid))
	}
	e.expectMissing(t, &corev1.Secret{}, "acme-alice-access")
	eventually(t, func() bool {
		e.expectReconciled(t)
		return isGone(t, e.Client, ns)
	})
}
