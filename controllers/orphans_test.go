package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// orphan removes the finalizer of the Tenant acme, deletes it, and returns the
// stored record.
func (e *env) orphan(t *testing.T) tenant.Record {
	t.Helper()
	tn := e.tenant(t)
	before := tn.DeepCopy()
	tn.Finalizers = nil
	if err := e.Patch(t.Context(), tn, client.MergeFrom(before)); err != nil {
		t.Fatalf("remove the finalizer: %v", err)
	}
	e.mustDelete(t, tn)
	return e.record(t, tenant.ID(tn.UID))
}

// record returns the stored record of a tenant, a zero one if there is none.
func (e *env) record(t *testing.T, id tenant.ID) tenant.Record {
	t.Helper()
	list, err := e.store.Records(t.Context(), tenant.RecordsOf{})
	if err != nil {
		t.Fatalf("Records: %v", err)
	}
	for _, r := range list {
		if r.Resource == id {
			return r
		}
	}
	return tenant.Record{}
}

func (e *env) sweep(t *testing.T) {
	t.Helper()
	if err := e.reconciler.SweepOrphans(t.Context()); err != nil {
		t.Fatalf("SweepOrphans: %v", err)
	}
}

func TestOrphansAreRevokedAndPurgedByPolicy(t *testing.T) {
	t.Parallel()
	for policy, purged := range map[v1alpha1.DeletionPolicy]bool{v1alpha1.Retain: false, v1alpha1.Delete: true} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.readyWithData(t, policy)
			e.sweep(t) // its Tenant is there: nothing is done
			e.expectOneToken(t, "alice")

			orphan := e.orphan(t)
			if n := len(e.store.valid(orphan.ID, "alice")); n != 1 {
				t.Fatalf("before the sweep %d tokens are valid, want 1", n)
			}
			e.sweep(t)
			expectEqual(t, "valid tokens", len(e.store.valid(orphan.ID, "alice")), 0)
			expectEqual(t, "state", e.record(t, orphan.Resource).State, tenant.Retained)
			e.store.age(orphan.ID, 23*time.Hour)
			e.sweep(t)
			if !e.store.index.HasPartition(orphan.Placement) {
				t.Error("the partition was dropped before the grace period ended")
			}

			e.store.age(orphan.ID, 2*time.Hour)
			e.store.fail(errMilvusUnavailable, "Drop")
			e.sweep(t)
			e.store.work()
			expectEqual(t, "the users are gone", e.record(t, orphan.Resource).Usage.Users == 0, purged)
			e.store.heal()
			e.store.work()
			expectEqual(t, "the rows are gone", e.record(t, orphan.Resource) == tenant.Record{}, purged)
			expectEqual(t, "the partition was dropped", !e.store.index.HasPartition(orphan.Placement), purged)
		})
	}
}

func TestSweepIgnoresTenantsOfOthers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*env) controllers.Config{
		"other cluster":   func(*env) controllers.Config { return controllers.Config{Cluster: "cluster-2"} },
		"other namespace": func(*env) controllers.Config { return controllers.Config{Namespaces: []string{"elsewhere"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.readyWithData(t, v1alpha1.Delete)
			orphan := e.orphan(t)
			e.use(t, change(e))
			e.sweep(t)
			expectEqual(t, "state", e.record(t, orphan.Resource).State, tenant.Active)
			expectEqual(t, "valid tokens", len(e.store.valid(orphan.ID, "alice")), 1)
		})
	}
}

// TestSweepAsksTheAPIServer: an empty cache does not make a Tenant an orphan.
func TestSweepAsksTheAPIServer(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.readyWithData(t, v1alpha1.Delete)
	e.blind = true
	e.sweep(t)
	expectEqual(t, "state", e.record(t, tenant.ID(tn.UID)).State, tenant.Active)
}

// TestDataOfAnOrphanIsAdopted: this is the purpose of the grace period.
func TestDataOfAnOrphanIsAdopted(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.readyWithData(t, v1alpha1.Delete)
	orphan := e.orphan(t)
	e.sweep(t)
	e.mustCreate(t, e.newTenant("alice"))
	eventually(t, func() bool { // the old Secret is garbage-collected first
		e.expectReconciled(t)
		return e.isReady(t)
	})
	e.store.age(orphan.ID, 48*time.Hour)
	e.sweep(t)
	expectEqual(t, "usage", e.tenant(t).Status.Usage.Memories.Used, 3)
}

// TestAdoptionOfAnEmptyOrphan: an adopted tenant is not purged, even if it is empty.
func TestAdoptionOfAnEmptyOrphan(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*testing.T, *env){
		"sweep before adoption": func(t *testing.T, e *env) { e.sweep(t) },
		"adoption before sweep": func(t *testing.T, e *env) { e.expectReconciled(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tn := e.newTenant("alice")
			tn.Spec.DeletionPolicy = v1alpha1.Delete
			e.expectReady(t, tn)
			orphan := e.orphan(t)
			e.mustCreate(t, e.newTenant("alice"))
			look(t, e)
			expectEqual(t, "state", e.record(t, orphan.Resource).State, tenant.Retained)
			e.store.work()
			eventually(t, func() bool { // the old Secret is garbage-collected first
				e.expectReconciled(t)
				return e.isReady(t)
			})
			expectEqual(t, "id", e.tenant(t).Status.ID, string(orphan.ID))
		})
	}
}

// TestTenantDeletedDuringCreation: the API server loses a finalizer that is added
// while it deletes the Tenant.
func TestTenantDeletedDuringCreation(t *testing.T) {
	t.Parallel()
	for name, heir := range map[string]bool{"no successor": false, "with a successor": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tn := e.newTenant("alice")
			tn.Spec.DeletionPolicy = v1alpha1.Delete
			e.expectReady(t, tn)
			orphan := e.orphan(t)
			if heir {
				tn := e.newTenant("alice")
				tn.Spec.Adoption.Policy = v1alpha1.AdoptNever
				e.mustCreate(t, tn)
			}
			result := e.expectReconciled(t)
			expectEqual(t, "valid tokens", len(e.store.valid(orphan.ID, "alice")), 0)
			e.store.work()
			expectEqual(t, "record", e.record(t, orphan.Resource), tenant.Record{})
			expectEqual(t, "the partition is there", e.store.index.HasPartition(orphan.Placement), false)
			if !heir {
				return
			}
			if result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
				t.Errorf("got requeue of the successor after %v, want it soon", result.RequeueAfter)
			}
			eventually(t, func() bool { // the old Secret is garbage-collected first
				e.expectReconciled(t)
				return e.isReady(t)
			})
		})
	}
}

// TestOrphanWithDataIsRetained: the operator does not purge it when its Tenant is removed.
func TestOrphanWithDataIsRetained(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.readyWithData(t, v1alpha1.Delete)
	orphan := e.orphan(t)
	e.expectReconciled(t)
	e.store.work()
	expectEqual(t, "valid tokens", len(e.store.valid(orphan.ID, "alice")), 0)
	expectEqual(t, "state", e.record(t, orphan.Resource).State, tenant.Retained)
	tn := e.newTenant("alice")
	tn.Spec.Adoption.Policy = v1alpha1.AdoptNever
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonAdoptionRequired, "")
}
