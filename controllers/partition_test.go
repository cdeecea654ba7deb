package controllers_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var errMilvusUnavailable = fault.New(fault.Unavailable, "Milvus is unavailable")

func placementOf(tn *v1alpha1.Tenant) placement.Location {
	p := tn.Status.Placement
	return placement.Location{Collection: p.Collection, Partition: p.Partition, Shared: p.Isolation == v1alpha1.Shared}
}

func TestLostPartitionIsRecreatedAndFilled(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.expectEvents(t, "Normal Ready")
	e.store.fill(tenant.ID(tn.UID), 1, 0)
	e.store.index.LosePartition(placementOf(tn))
	e.expectReconciled(t)
	if !e.store.index.HasPartition(placementOf(tn)) {
		t.Error("the partition was not recreated")
	}
	e.expectReconciled(t)
	expectEqual(t, "refilled", e.store.refills(tenant.ID(tn.UID)), true)
	e.expectEvents(t, "Warning PartitionLost")
}

func TestRebuildingIsReported(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.store.fill(tenant.ID(tn.UID), 5, 0)
	e.store.index.LosePartition(placementOf(tn))
	for range 2 {
		if result := e.expectReconciled(t); result.RequeueAfter > 5*time.Second {
			t.Errorf("got requeue after %v, want at most 5s", result.RequeueAfter)
		}
		e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonRebuilding, "")
		e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	}
	e.store.work()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	e.expectEvents(t, "Normal Ready", "Warning PartitionLost")
}

func TestRefillIsRetriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.store.fill(tenant.ID(tn.UID), 1, 0)
	e.store.index.LosePartition(placementOf(tn))
	e.store.fail(errPostgresUnavailable, "SetPartitionID")
	for range 2 { // the operator may end in between
		if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Reconcile: got error %v, want Unavailable", err)
		}
		e.use(t, controllers.Config{})
	}
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "PostgreSQL is unavailable")
	e.store.heal()
	e.expectReconciled(t)
	e.expectReconciled(t)
	expectEqual(t, "refilled", e.store.refills(tenant.ID(tn.UID)), true)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
}

func TestTokensDoNotWaitForTheIndex(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.store.fail(errMilvusUnavailable, "Ensure")
	e.mustCreate(t, e.newTenant("alice"))
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "Milvus is unavailable")
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	e.expectOneToken(t, "alice")
	e.expectEvents(t, "Warning Unavailable")

	e.store.fill(e.id(t), 1, 0)
	e.store.heal()
	e.expectReconciled(t)
	e.expectEvents(t, "Normal Ready")
	// Data written in the meantime has to be indexed in the new partition.
	expectEqual(t, "refilled", e.store.refills(e.id(t)), true)
}

// TestLoadingIsReported: nothing waits for Milvus to load a partition, be it new or
// after a restart.
func TestLoadingIsReported(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	for range 2 {
		e.store.fail(placement.ErrLoading, "Ensure")
		for range 2 {
			if result := e.expectReconciled(t); result.RequeueAfter > 5*time.Second {
				t.Errorf("got requeue after %v, want at most 5s", result.RequeueAfter)
			}
			e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonLoading, "Milvus is loading")
			e.expectOneToken(t, "alice")
		}
		e.store.heal()
		e.expectReconciled(t)
		e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
		e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
		e.expectEvents(t, "Normal Ready")
	}
	expectEqual(t, "refilled", e.store.refills(e.id(t)), false)
}

// TestLongLoadingIsCheckedRarely: the interval grows with the time elapsed.
func TestLongLoadingIsCheckedRarely(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	e.store.fail(placement.ErrLoading, "Ensure")
	soon := e.expectReconciled(t).RequeueAfter
	e.backdateConditions(t, 100*time.Second)
	later := e.expectReconciled(t)
	if after := later.RequeueAfter; after < 20*time.Second || after > time.Minute || after <= soon {
		t.Errorf("got requeue after %v, and %v when loading began; want a fifth of 100 s", after, soon)
	}
	expectEqual(t, "priority", later.Priority, new(-1))
}

// TestLongMigrationIsCheckedRarely: checks of thousands of Tenants must not delay others, such as those with a token to revoke.
func TestLongMigrationIsCheckedRarely(t *testing.T) {
	t.Parallel()
	for reason, begin := range map[string]func(*env){
		v1alpha1.ReasonMigrating: func(e *env) {
			e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
		},
		v1alpha1.ReasonRebuilding: func(e *env) {
			e.store.fill(e.id(t), 5, 0)
			e.store.index.LosePartition(placementOf(e.tenant(t)))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.expectReady(t, e.newTenant("alice"))
			begin(e)
			e.expectReconciled(t)
			soon := e.expectReconciled(t)
			e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, reason, "")
			expectEqual(t, "first check", soon.RequeueAfter, 2*time.Second)
			expectEqual(t, "priority", soon.Priority, new(-1))
			e.backdateConditions(t, 100*time.Second)
			if later := e.expectReconciled(t).RequeueAfter; later < 20*time.Second || later > 25*time.Second {
				t.Errorf("got requeue after %v, want a fifth of 100 s", later)
			}
			e.backdateConditions(t, 10*time.Hour)
			expectEqual(t, "last checks", e.expectReconciled(t).RequeueAfter, time.Minute)
		})
	}
}

// TestLoadingAfterAnOutageIsCheckedSoon: the time of the outage, in which IndexReady was False
// too, does not count.
func TestLoadingAfterAnOutageIsCheckedSoon(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	e.store.fail(errMilvusUnavailable, "Ensure")
	if _, err := e.reconcile(t); !errors.Is(err, errMilvusUnavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.backdateConditions(t, time.Hour)
	e.store.heal()
	e.store.fail(placement.ErrLoading, "Ensure")
	for range 3 {
		if result := e.expectReconciled(t); result.RequeueAfter > 5*time.Second {
			t.Errorf("got requeue after %v, want at most 5s", result.RequeueAfter)
		}
	}
}

// TestLostWhileLoading: a lost partition is recreated, but not loaded at once.
func TestLostWhileLoading(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.expectEvents(t, "Normal Ready")
	e.store.fill(tenant.ID(tn.UID), 5, 0)
	e.store.index.LosePartition(placementOf(tn))
	e.store.failAfter(placement.ErrLoading, "Ensure")
	e.expectReconciled(t)
	e.store.heal()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonRebuilding, "")
	e.expectEvents(t, "Warning PartitionLost", "Normal Ready")
	e.store.work()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
}

func TestMigration(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.Isolation = v1alpha1.Shared
	tn = e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	shared := placementOf(tn)
	if !shared.Shared || !e.store.index.HasPartition(shared) {
		t.Fatalf("the tenant is at %+v, want a shared collection", shared)
	}

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Partition })
	for range 2 { // until it is filled, which is a job's task
		if result := e.expectReconciled(t); result.RequeueAfter > 5*time.Second {
			t.Errorf("got requeue after %v, want at most 5s", result.RequeueAfter)
		}
		e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonMigrating, ownCollection)
		e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
		got := e.tenant(t)
		expectEqual(t, "placement", placementOf(got), shared)
		expectEqual(t, "moving to", got.Status.Placement.MigratingTo, ownCollection)
	}
	e.expectEvents(t, "Normal Migrating")
	e.store.work()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	got := e.tenant(t)
	if p := placementOf(got); p.Shared || got.Status.Placement.MigratingTo != "" || !e.store.index.HasPartition(p) || e.store.index.HasPartition(shared) {
		t.Errorf("after the migration the placement is %+v", got.Status.Placement)
	}

	// A migration that is reverted ends at the original placement.
	at := placementOf(got)
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
	e.expectReconciled(t)
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Partition })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	expectEqual(t, "placement", placementOf(e.tenant(t)), at)
}

func TestMigrationToAnotherModel(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.expectEvents(t, "Normal Ready")
	e.store.embed(tenant.ID(tn.Status.ID), "next-model")
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonReembedding, "next-model")
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectEvents(t, "Normal Reembedding")
	expectEqual(t, "next model", e.tenant(t).Status.Placement.NextModel, "next-model")
	e.store.stopEmbedding(tenant.ID(tn.Status.ID))
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	expectEqual(t, "next model", e.tenant(t).Status.Placement.NextModel, "")
}

// TestNoIndex: a Tenant is Ready without Milvus, enters the index while it stays usable, and leaves
// it without waiting for Milvus.
func TestNoIndex(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.store.fail(errMilvusUnavailable, "Ensure", "Drop")
	e.noIndex(t, true)
	tn := e.newTenant("alice")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	tn = e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonUnindexed, "")
	expectEqual(t, "placement", placementOf(tn), placement.Location{})
	e.store.fill(tenant.ID(tn.UID), 5, 0)

	e.store.heal()
	e.noIndex(t, false)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonMigrating, ownCollection)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectEvents(t, "Normal Migrating")
	e.store.work()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	if p := placementOf(e.tenant(t)); p.Collection == "" || !e.store.index.HasPartition(p) {
		t.Errorf("the placement is %+v, want a partition", p)
	}

	e.store.fail(errMilvusUnavailable, "Ensure", "Drop")
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.noIndex(t, true)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonUnindexed, "")
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	expectEqual(t, "placement", placementOf(e.tenant(t)), placement.Location{})
	e.expectReconciled(t)
	e.expectNoWrites(t)

	e.mustDelete(t, tn)
	e.expectReconciled(t)
	expectEqual(t, "purge", e.tenant(t).Status.Purge, &v1alpha1.TenantPurge{Memories: 5})
	e.store.work()
	e.expectReconciled(t)
	e.expectGone(t)
}

// TestIndexOnDemand: a Tenant needs no Milvus, and no other condition, until one of its users has
// outgrown exact scoring. Then it enters the index while it stays usable.
func TestIndexOnDemand(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.store.exec("alter table tenants alter column outgrown_at drop default")
	e.store.fail(errMilvusUnavailable, "Ensure", "Drop")
	tn := e.expectReady(t, e.newTenant("alice"))
	e.expectEvents(t, "Normal Ready")
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonUnindexed, "an index is used once a user has more than 2000 units")
	expectEqual(t, "placement", placementOf(tn), placement.Location{})
	e.store.fill(tenant.ID(tn.UID), 5, 0)
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonUnindexed, "")
	e.expectReconciled(t)
	e.expectNoWrites(t)

	e.store.outgrow(tenant.ID(tn.UID))
	e.use(t, controllers.Config{}) // the operator was restarted before it migrated the tenant
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: got error %v, want Unavailable", err)
	}
	e.store.heal()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonMigrating, sharedCollection)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.store.work()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	if p := placementOf(e.tenant(t)); !p.Shared || !e.store.index.HasPartition(p) {
		t.Errorf("the placement is %+v, want a shared collection", p)
	}
}

// noIndex starts an operator that places tenants in no index, or in one.
func (e *env) noIndex(t *testing.T, unindexed bool) {
	t.Helper()
	e.store.noIndex(unindexed)
	e.use(t, controllers.Config{Unindexed: unindexed})
}
