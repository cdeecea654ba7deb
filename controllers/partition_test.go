package controllers_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var errMilvusAway = fault.New(fault.Unavailable, "Milvus is away")

func placementOf(tn *v1alpha1.Tenant) tenant.Placement {
	return tenant.Placement{Collection: tn.Status.Placement.Collection, Partition: tn.Status.Placement.Partition}
}

func TestLostPartitionIsMadeAndFilledAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.expectEvents(t, "Normal Ready")
	w.fake.Lose(placementOf(tn))
	w.expectReconciled(t)
	if !w.fake.HasPartition(placementOf(tn)) {
		t.Error("the partition was not made again")
	}
	w.expectReconciled(t)
	expectEqual(t, "reindexed", w.fake.Reindexed(tenant.ID(tn.UID)), 1)
	w.expectEvents(t, "Warning PartitionLost")
}

func TestReindexIsOwedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.fake.Lose(placementOf(tn))
	w.fake.Fail(errAway, "Reindex")
	if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want it to be tried again", err)
	}
	w.expectCondition(t, v1alpha1.PartitionReady, metav1.ConditionFalse, v1alpha1.ReasonReindexPending, "PostgreSQL is away")
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

	w.fake.Heal()
	w.expectReconciled(t)
	w.expectEvents(t, "Normal Ready")
	// What was written meanwhile has to come into the new partition.
	expectEqual(t, "reindexed", w.fake.Reindexed(w.id(t)), 1)
}

func TestSharedIsPlacedAsPartition(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.Isolation = v1alpha1.Shared
	w.expectReady(t, tn)
	w.expectCondition(t, v1alpha1.PartitionReady, metav1.ConditionTrue, v1alpha1.ReasonPlacedAsPartition, "Shared is not there yet")
	w.expectEvents(t, "Normal PlacedAsPartition", "Normal Ready")
	w.expectReconciled(t)
	w.expectEvents(t)
}
