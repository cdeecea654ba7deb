package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var errMilvusAway = fault.New(fault.Unavailable, "Milvus is away")

func placementOf(tn *v1alpha1.Tenant) placement.Location {
	p := tn.Status.Placement
	return placement.Location{Collection: p.Collection, Partition: p.Partition, Shared: p.Isolation == v1alpha1.Shared}
}

func TestLostPartitionIsMadeAndFilledAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.expectEvents(t, "Normal Ready")
	w.fake.TakeAway(placementOf(tn))
	w.expectReconciled(t)
	if !w.fake.HasPartition(placementOf(tn)) {
		t.Error("the partition was not made again")
	}
	w.expectReconciled(t)
	expectEqual(t, "reindexed", w.fake.Reindexed(tenant.ID(tn.UID)), 1)
	w.expectEvents(t, "Warning PartitionLost")
}

func TestRebuildingIsShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.fake.Fill(tenant.ID(tn.UID), 5, 0)
	w.fake.TakeAway(placementOf(tn))
	for range 2 {
		if result := w.expectReconciled(t); result.RequeueAfter > 5*time.Second {
			t.Errorf("the next look is in %v, want it soon", result.RequeueAfter)
		}
		w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonRebuilding, "")
		w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	}
	w.fake.Work()
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	w.expectEvents(t, "Normal Ready", "Warning PartitionLost")
}

func TestRefillIsOwedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.fake.TakeAway(placementOf(tn))
	w.fake.Fail(errAway, "SetPartitionID")
	for range 2 { // an operator that ends in between owes it all the same
		if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Reconcile: %v, want it to be tried again", err)
		}
		w.use(t, controllers.Config{})
	}
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "PostgreSQL is away")
	w.fake.Heal()
	w.expectReconciled(t)
	w.expectReconciled(t)
	expectEqual(t, "reindexed", w.fake.Reindexed(tenant.ID(tn.UID)), 1)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
}

func TestIndexAwayDoesNotHoldTokens(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.fake.Fail(errMilvusAway, "Ensure")
	w.mustCreate(t, w.newTenant("alice"))
	if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want it to be tried again", err)
	}
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "Milvus is away")
	w.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	w.expectOneToken(t, "alice")
	w.expectEvents(t, "Warning Unavailable")

	w.fake.Fill(w.id(t), 1, 0)
	w.fake.Heal()
	w.expectReconciled(t)
	w.expectEvents(t, "Normal Ready")
	// What was written meanwhile has to come into the new partition.
	expectEqual(t, "reindexed", w.fake.Reindexed(w.id(t)), 1)
}

// TestLoadingIsShown has Milvus load what it was asked to make, which nobody
// waits for, and load it again later.
func TestLoadingIsShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.mustCreate(t, w.newTenant("alice"))
	for range 2 {
		w.fake.Fail(placement.ErrLoading, "Ensure")
		for range 2 {
			if result := w.expectReconciled(t); result.RequeueAfter > 5*time.Second {
				t.Errorf("the next look is in %v, want it soon", result.RequeueAfter)
			}
			w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonLoading, "Milvus is loading")
			w.expectOneToken(t, "alice")
		}
		w.fake.Heal()
		w.expectReconciled(t)
		w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
		w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
		w.expectEvents(t, "Normal Ready")
	}
	expectEqual(t, "reindexed", w.fake.Reindexed(w.id(t)), 0)
}

// TestLoadingForLongIsLookedAtRarely has been waiting for minutes.
func TestLoadingForLongIsLookedAtRarely(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.mustCreate(t, w.newTenant("alice"))
	w.fake.Fail(placement.ErrLoading, "Ensure")
	soon := w.expectReconciled(t).RequeueAfter
	tn := w.tenant(t)
	for i := range tn.Status.Conditions {
		tn.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-100 * time.Second))
	}
	if err := w.Status().Update(t.Context(), tn); err != nil {
		t.Fatal(err)
	}
	if later := w.expectReconciled(t).RequeueAfter; later < 20*time.Second || later > time.Minute || later <= soon {
		t.Errorf("the next look is in %v, after one in %v when loading began; want a fifth of 100 s", later, soon)
	}
}

// TestLostWhileLoading has what was lost be there again only later.
func TestLostWhileLoading(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.expectEvents(t, "Normal Ready")
	w.fake.Fill(tenant.ID(tn.UID), 5, 0)
	w.fake.TakeAway(placementOf(tn))
	w.fake.FailAfter(placement.ErrLoading, "Ensure")
	w.expectReconciled(t)
	w.fake.Heal()
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonRebuilding, "")
	w.expectEvents(t, "Warning PartitionLost", "Normal Ready")
	w.fake.Work()
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
}

func TestMove(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.Isolation = v1alpha1.Shared
	tn = w.expectReady(t, tn)
	w.expectEvents(t, "Normal Ready")
	shared := placementOf(tn)
	if !shared.Shared || !w.fake.HasPartition(shared) {
		t.Fatalf("the tenant is at %+v, want a shared place", shared)
	}

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Partition })
	for range 2 { // until it is filled, which is a job's task
		if result := w.expectReconciled(t); result.RequeueAfter > 5*time.Second {
			t.Errorf("the next look is in %v, want it soon", result.RequeueAfter)
		}
		w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonMigrating, "units_1")
		w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
		got := w.tenant(t)
		expectEqual(t, "placement", placementOf(got), shared)
		expectEqual(t, "moving to", got.Status.Placement.MigratingTo, "units_1")
	}
	w.expectEvents(t, "Normal Migrating")
	w.fake.Work()
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	got := w.tenant(t)
	if p := placementOf(got); p.Shared || got.Status.Placement.MigratingTo != "" || !w.fake.HasPartition(p) || w.fake.HasPartition(shared) {
		t.Errorf("after the move the status says %+v", got.Status.Placement)
	}

	// A change of mind ends where it began.
	at := placementOf(got)
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
	w.expectReconciled(t)
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Partition })
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	expectEqual(t, "placement", placementOf(w.tenant(t)), at)
}
