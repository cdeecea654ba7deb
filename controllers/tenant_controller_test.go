package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("bob", "alice")
	tn.Spec.Users[1].Email = "alice@acme.test"
	tn = w.expectReady(t, tn)
	w.expectEvents(t, "Normal Ready")
	w.expectCondition(t, v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	w.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	w.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionTrue, v1alpha1.ReasonIssued, "")

	alice, bob := w.expectOneToken(t, "alice"), w.expectOneToken(t, "bob")
	expectEqual(t, "status", tn.Status, v1alpha1.TenantStatus{
		ObservedGeneration: 1,
		ID:                 string(tn.UID),
		Placement:          &v1alpha1.TenantPlacement{Collection: "units_1", Partition: "t1", Isolation: v1alpha1.Partition},
		Usage: &v1alpha1.TenantUsage{
			Memories: v1alpha1.CountUsage{Hard: 10_000}, Conversations: v1alpha1.CountUsage{Hard: 500},
			Storage: v1alpha1.StorageUsage{Hard: resource.MustParse("10Gi")}, Users: v1alpha1.CountUsage{Used: 2, Hard: 50},
		},
		UserCounts: &v1alpha1.UserCounts{Total: 2, Ready: 2},
		Users: []v1alpha1.UserStatus{
			{Name: "alice", Secret: "acme-alice-access", Fingerprint: tenant.HashSecret(alice).Fingerprint(), TokenGeneration: 1, Issued: 1, ManagedBy: "Operator"},
			{Name: "bob", Secret: "acme-bob-access", Fingerprint: tenant.HashSecret(bob).Fingerprint(), TokenGeneration: 1, Issued: 1, ManagedBy: "Operator"},
		},
	}, cmpopts.IgnoreFields(v1alpha1.TenantStatus{}, "Conditions"), cmpopts.IgnoreFields(v1alpha1.TenantUsage{}, "ChangedAt"))
	if !w.fake.HasPartition(placement.Location{Collection: "units_1", Partition: "t1"}) {
		t.Error("the partition was not made")
	}

	secret := w.secret(t, "acme-alice-access")
	if !metav1.IsControlledBy(secret, tn) {
		t.Errorf("the Secret's owners are %+v, want the Tenant", secret.OwnerReferences)
	}
	expectEqual(t, "labels", secret.Labels, map[string]string{
		"mnemo.dev/tenant": "acme", "mnemo.dev/user": "alice", "app.kubernetes.io/managed-by": "mnemo",
	})
	if url, password := string(secret.Data["url"]), string(secret.Data["password"]); url != apiURL || len(password) != 24 {
		t.Errorf("the Secret's url is %q and its password has %d characters, want %q and 24", url, len(password), apiURL)
	}
	got, ok := w.fake.Spec(tenant.ID(tn.UID))
	if !ok || got.Quota.Memories != 10_000 || got.Cluster != "cluster-1" || got.DeletionPolicy != tenant.Retain {
		t.Errorf("stored is %+v, want the operator's defaults", got)
	}
}

func TestSecondPassWritesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice", "bob"))
	w.expectEvents(t, "Normal Ready")
	before, stored := w.versions(t), w.fake.Backend().Version(t, tenant.ID(tn.UID))
	for range 3 {
		if result := w.expectReconciled(t); result.RequeueAfter < 54*time.Second || result.RequeueAfter > 66*time.Second {
			t.Errorf("the next pass is in %v, want about a minute", result.RequeueAfter)
		}
	}
	expectEqual(t, "resource versions", w.versions(t), before)
	expectEqual(t, "stored version", w.fake.Backend().Version(t, tenant.ID(tn.UID)), stored)
	w.expectEvents(t)
	calls := w.fake.Calls()
	expectEqual(t, "writes of tokens", []int{calls["Install"], calls["RevokeOlder"], calls["SetPartitionID"]}, []int{2, 0, 1})
}

func TestUsageIsRefreshed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.Quota = v1alpha1.TenantQuota{
		Memories: new(int64(20)), Conversations: new(int64(0)), Storage: new(resource.MustParse("1Mi")), Users: new(int64(3)),
		RequestsPerMinute: new(int64(7)), ListTokens: new(int64(8)),
		PerUser: &v1alpha1.UserQuota{Memories: new(int64(5))},
	}
	tn = w.expectReady(t, tn)
	w.fake.Fill(tenant.ID(tn.UID), 12, 0)
	w.expectReconciled(t)
	expectEqual(t, "usage", w.tenant(t).Status.Usage, &v1alpha1.TenantUsage{
		Memories: v1alpha1.CountUsage{Used: 12, Hard: 20}, Users: v1alpha1.CountUsage{Used: 1, Hard: 3},
		Storage: v1alpha1.StorageUsage{Used: resource.MustParse("1200"), Hard: resource.MustParse("1Mi")},
	}, cmpopts.IgnoreFields(v1alpha1.TenantUsage{}, "ChangedAt"))
	got, _ := w.fake.Spec(tenant.ID(tn.UID))
	expectEqual(t, "quota", got.Quota, tenant.Quota{
		Memories: 20, Storage: 1 << 20, Users: 3, RequestsPerMinute: 7, ListTokens: 8,
		UserMemories: 5, UserConversations: tenant.NoLimit,
	})

}

func TestPrinterColumns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.fake.Fill(tenant.ID(tn.UID), 12, 3)
	w.expectReconciled(t)
	for _, test := range []struct {
		args         []string
		columns, row string // without the age
	}{
		{[]string{"get", "tenants"},
			"NAME READY SUSPENDED USERS MEMORIES CONVERSATIONS BLOCKED STORAGE",
			"acme True false 1 12 3 0 1500"},
		{[]string{"get", "tenants", "-o", "wide"},
			"NAME READY REASON SUSPENDED USERS MEMORIES CONVERSATIONS BLOCKED STORAGE MAXUSERS MAXMEMORIES MAXCONVERSATIONS MAXSTORAGE",
			"acme True Ready false 1 12 3 0 1500 50 10000 500 10Gi"},
	} {
		out, err := w.kubectl(t, test.args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", test.args, err, out)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		columns, row := strings.Fields(lines[0]), strings.Fields(lines[1])
		expectEqual(t, "columns", columns[:len(columns)-1], strings.Fields(test.columns))
		expectEqual(t, "row", row[:len(row)-1], strings.Fields(test.row))
	}
}

func TestListedUsersBeyondTheDefault(t *testing.T) {
	t.Parallel()
	w := setup(t)
	defaults := controllers.DefaultQuota
	defaults.Users = 1
	w.use(t, controllers.Config{Defaults: defaults})
	tn := w.expectReady(t, w.newTenant("alice", "bob"))
	expectEqual(t, "users", tn.Status.Usage.Users, v1alpha1.CountUsage{Used: 2, Hard: 2})
}

func TestSuspended(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.expectReady(t, w.newTenant("alice"))
	w.expectEvents(t, "Normal Ready")
	token := w.expectOneToken(t, "alice")
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = true })
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Suspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "spec.suspended")
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	w.expectEvents(t, "Normal Suspended")
	if got, _ := w.fake.Spec(tenant.ID(tn.UID)); !got.Suspended {
		t.Error("the stored tenant is not suspended")
	}
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = false })
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	w.expectNoCondition(t, v1alpha1.Suspended)
	w.expectEvents(t, "Normal Resumed")
	expectEqual(t, "token", w.expectOneToken(t, "alice"), token)
}

func TestPaused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
	w.mustCreate(t, tn)
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Paused, metav1.ConditionTrue, v1alpha1.ReasonPaused, "mnemo.dev/paused")
	w.expectEvents(t, "Normal Paused")
	before := w.versions(t)
	w.expectReconciled(t)
	expectEqual(t, "resource versions", w.versions(t), before)
	expectEqual(t, "calls of the stores", len(w.fake.Calls()), 0)

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Annotations = nil })
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	expectEqual(t, "conditions", len(w.tenant(t).Status.Conditions), 4)
}

func TestStoreAway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.fake.Fail(errAway, "Apply")
	w.mustCreate(t, w.newTenant("alice"))
	for range 2 { // the second time says nothing new
		if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Reconcile: %v, want it to be tried again", err)
		}
	}
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "PostgreSQL is away")
	w.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "PostgreSQL is away")
	w.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "")
	w.expectEvents(t, "Warning Unavailable")
	w.fake.Heal()
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	w.expectEvents(t, "Normal Ready")
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.fake.Fail(fault.New(fault.Internal, "password=hunter2"), "Usage", "Apply")
	w.mustCreate(t, w.newTenant())
	if _, err := w.reconcile(t); err == nil {
		t.Fatal("Reconcile succeeded, want an error")
	}
	w.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonFailed, "operator's log")
	for _, c := range w.tenant(t).Status.Conditions {
		if strings.Contains(c.Message, "hunter2") {
			t.Errorf("condition %s shows %q", c.Type, c.Message)
		}
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.expectReady(t, w.newTenant("alice"))
	old := w.expectOneToken(t, "alice")
	w.fake.Fill(tenant.ID(first.UID), 3, 1)
	w.mustDelete(t, first)
	w.expectReconciled(t)
	w.expectMissing(t, &v1alpha1.Tenant{}, "acme")
	w.expectEvents(t, "Normal Ready")

	w.mustCreate(t, w.newTenant("alice"))
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonClaimRequired, "set spec.claim")
	w.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonClaimRequired, string(first.UID))
	w.expectEvents(t, "Warning ClaimRequired")

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Claim = "00000000-0000-0000-0000-000000000000" })
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonClaimRefused, "")

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Claim = string(first.UID) })
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	got := w.tenant(t)
	expectEqual(t, "usage", got.Status.Usage.Memories.Used, 3)
	expectEqual(t, "placement", got.Status.Placement, first.Status.Placement)
	token := string(w.secret(t, "acme-alice-access").Data["token"])
	expectEqual(t, "valid tokens", w.fake.Valid(tenant.ID(got.Status.ID), "alice"), []tenant.Hash{tenant.HashSecret(token)})
	if token == old {
		t.Error("the claim revived the old token")
	}
}
