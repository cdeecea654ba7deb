package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// vanish deletes the tenant acme as somebody who takes its finalizer off, and
// returns what is stored of it then.
func (w *world) vanish(t *testing.T) tenant.Record {
	t.Helper()
	tn := w.tenant(t)
	before := tn.DeepCopy()
	tn.Finalizers = nil
	if err := w.Patch(t.Context(), tn, client.MergeFrom(before)); err != nil {
		t.Fatalf("take the finalizer off: %v", err)
	}
	w.mustDelete(t, tn)
	return w.record(t, tenant.ID(tn.UID))
}

// record returns what is stored of a tenant, a zero one when nothing is.
func (w *world) record(t *testing.T, id tenant.ID) tenant.Record {
	t.Helper()
	list, err := w.fake.Records(t.Context(), tenant.RecordsOf{})
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

func (w *world) sweep(t *testing.T) {
	t.Helper()
	if err := w.reconciler.SweepOrphans(t.Context()); err != nil {
		t.Fatalf("SweepOrphans: %v", err)
	}
}

func TestOrphansLoseTheirTokensAndThenByPolicyTheirData(t *testing.T) {
	t.Parallel()
	for policy, purged := range map[v1alpha1.DeletionPolicy]bool{v1alpha1.Retain: false, v1alpha1.Delete: true} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.readyWithData(t, policy)
			w.sweep(t) // its Tenant is there: nothing is done
			w.expectOneToken(t, "alice")

			orphan := w.vanish(t)
			if n := len(w.fake.Valid(orphan.ID, "alice")); n != 1 {
				t.Fatalf("before the sweep %d tokens are valid, want 1: nobody told the stores", n)
			}
			w.sweep(t)
			expectEqual(t, "valid tokens", len(w.fake.Valid(orphan.ID, "alice")), 0)
			expectEqual(t, "state", w.record(t, orphan.Resource).State, tenant.Retained)
			w.fake.Age(orphan.ID, 23*time.Hour)
			w.sweep(t)
			if !w.fake.HasPartition(orphan.Placement) {
				t.Error("the partition went before the grace had passed")
			}

			w.fake.Age(orphan.ID, 2*time.Hour)
			w.fake.Fail(errMilvusAway, "Drop")
			err := w.reconciler.SweepOrphans(t.Context())
			if purged != fault.Is(err, fault.Unavailable) {
				t.Errorf("with Milvus away the sweep says %v", err)
			}
			expectEqual(t, "state", w.record(t, orphan.Resource).State, tenant.Retained)
			w.fake.Heal()
			w.sweep(t)
			w.fake.Work()
			expectEqual(t, "the rows are gone", w.record(t, orphan.Resource) == tenant.Record{}, purged)
			expectEqual(t, "the partition is gone", !w.fake.HasPartition(orphan.Placement), purged)
		})
	}
}

func TestSweepLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world) controllers.Config{
		"of another cluster":   func(*world) controllers.Config { return controllers.Config{Cluster: "cluster-2"} },
		"of another namespace": func(*world) controllers.Config { return controllers.Config{Namespaces: []string{"elsewhere"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.readyWithData(t, v1alpha1.Delete)
			orphan := w.vanish(t)
			w.use(t, change(w))
			w.sweep(t)
			expectEqual(t, "state", w.record(t, orphan.Resource).State, tenant.Active)
			expectEqual(t, "valid tokens", len(w.fake.Valid(orphan.ID, "alice")), 1)
		})
	}
}

// TestSweepAsksTheAPIServer gives the sweep a cache that lost its Tenants.
func TestSweepAsksTheAPIServer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.readyWithData(t, v1alpha1.Delete)
	w.blind = true
	w.sweep(t)
	expectEqual(t, "state", w.record(t, tenant.ID(tn.UID)).State, tenant.Active)
}

// TestDataOfAnOrphanCanBeClaimed: the grace is for this.
func TestDataOfAnOrphanCanBeClaimed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.readyWithData(t, v1alpha1.Delete)
	orphan := w.vanish(t)
	w.sweep(t)
	tn := w.newTenant("alice")
	tn.Spec.Claim = string(orphan.Resource)
	w.mustCreate(t, tn)
	eventually(t, func() bool { // the old one's Secret goes first
		w.expectReconciled(t)
		return w.isReady(t)
	})
	w.fake.Age(orphan.ID, 48*time.Hour)
	w.sweep(t)
	expectEqual(t, "usage", w.tenant(t).Status.Usage.Memories.Used, 3)
}

// TestClaimOfAnEmptyOrphan: what somebody asks for by name is not purged
// under their hands, though it holds nothing.
func TestClaimOfAnEmptyOrphan(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*testing.T, *world){
		"the sweep comes first": func(t *testing.T, w *world) { w.sweep(t) },
		"the claim comes first": func(t *testing.T, w *world) { w.expectReconciled(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			tn := w.newTenant("alice")
			tn.Spec.DeletionPolicy = v1alpha1.Delete
			w.expectReady(t, tn)
			orphan := w.vanish(t)
			heir := w.newTenant("alice")
			heir.Spec.Claim = string(orphan.Resource)
			w.mustCreate(t, heir)
			look(t, w)
			expectEqual(t, "state", w.record(t, orphan.Resource).State, tenant.Retained)
			w.fake.Work()
			eventually(t, func() bool { // the old one's Secret goes first
				w.expectReconciled(t)
				return w.isReady(t)
			})
			expectEqual(t, "id", w.tenant(t).Status.ID, string(orphan.ID))
		})
	}
}

// TestTenantThatWentAtBirth is of a Tenant that is deleted while its finalizer
// is added: the API server loses the finalizer then.
func TestTenantThatWentAtBirth(t *testing.T) {
	t.Parallel()
	for name, heir := range map[string]bool{"nobody has its name": false, "another has its name": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			tn := w.newTenant("alice")
			tn.Spec.DeletionPolicy = v1alpha1.Delete
			w.expectReady(t, tn)
			orphan := w.vanish(t)
			if heir {
				w.mustCreate(t, w.newTenant("alice"))
			}
			result := w.expectReconciled(t)
			expectEqual(t, "valid tokens", len(w.fake.Valid(orphan.ID, "alice")), 0)
			w.fake.Work()
			expectEqual(t, "record", w.record(t, orphan.Resource), tenant.Record{})
			expectEqual(t, "the partition is there", w.fake.HasPartition(orphan.Placement), false)
			if !heir {
				return
			}
			if result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
				t.Errorf("the heir is looked at again in %v", result.RequeueAfter)
			}
			eventually(t, func() bool { // the old one's Secret goes first
				w.expectReconciled(t)
				return w.isReady(t)
			})
		})
	}
}

// TestOrphanWithDataWaits though the operator sees its Tenant go.
func TestOrphanWithDataWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.readyWithData(t, v1alpha1.Delete)
	orphan := w.vanish(t)
	w.expectReconciled(t)
	w.fake.Work()
	expectEqual(t, "valid tokens", len(w.fake.Valid(orphan.ID, "alice")), 0)
	expectEqual(t, "state", w.record(t, orphan.Resource).State, tenant.Retained)
	w.mustCreate(t, w.newTenant("alice"))
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonClaimRequired, "")
}
