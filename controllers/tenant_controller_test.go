package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("bob", "alice")
	tn.Spec.Users[1].Email = "alice@acme.test"
	tn = e.expectReady(t, tn)
	e.expectEvents(t, "Normal Ready")
	e.expectCondition(t, v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	e.expectCondition(t, v1alpha1.IndexReady, metav1.ConditionTrue, v1alpha1.ReasonAssigned, "")
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionTrue, v1alpha1.ReasonIssued, "")

	alice, bob := e.expectOneToken(t, "alice"), e.expectOneToken(t, "bob")
	expectEqual(t, "status", tn.Status, v1alpha1.TenantStatus{
		ObservedGeneration: 1,
		ID:                 string(tn.UID),
		Placement:          &v1alpha1.TenantPlacement{Collection: ownCollection, Partition: placement.PartitionName(string(tn.UID), 0), Isolation: v1alpha1.Partition, Model: postgrestest.Generation.Model},
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
	if !e.store.index.HasPartition(placementOf(tn)) {
		t.Error("the partition was not created")
	}

	secret := e.secret(t, "acme-alice-access")
	if !metav1.IsControlledBy(secret, tn) {
		t.Errorf("the Secret has owners %+v, want the Tenant", secret.OwnerReferences)
	}
	expectEqual(t, "labels", secret.Labels, map[string]string{
		"mnemo.dev/tenant": "acme", "mnemo.dev/user": "alice", "app.kubernetes.io/managed-by": "mnemo",
	})
	if url, password := string(secret.Data["url"]), string(secret.Data["password"]); url != apiURL || len(password) != 24 {
		t.Errorf("the Secret's url is %q and its password has %d characters, want %q and 24", url, len(password), apiURL)
	}
	got, ok := e.store.spec(tenant.ID(tn.UID))
	if !ok || got.Quota.Memories != 10_000 || got.Cluster != "cluster-1" || got.DeletionPolicy != tenant.Retain {
		t.Errorf("stored spec is %+v, want the operator's defaults", got)
	}
}

func TestSecondReconcileWritesNothing(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice", "bob"))
	e.expectEvents(t, "Normal Ready")
	before, stored := e.versions(t), e.store.version(tenant.ID(tn.UID))
	for range 3 {
		if result := e.expectReconciled(t); result.RequeueAfter < 54*time.Second || result.RequeueAfter > 66*time.Second {
			t.Errorf("got requeue after %v, want about a minute", result.RequeueAfter)
		}
	}
	expectEqual(t, "resource versions", e.versions(t), before)
	expectEqual(t, "stored version", e.store.version(tenant.ID(tn.UID)), stored)
	e.expectEvents(t)
	calls := e.store.counts()
	expectEqual(t, "writes of tokens", []int{calls["Install"], calls["RevokeOlder"], calls["SetPartitionID"]}, []int{2, 0, 1})
}

func TestUsageIsRefreshed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.Quota = v1alpha1.TenantQuota{
		Memories: new(int64(20)), Conversations: new(int64(0)), Storage: new(resource.MustParse("1Mi")), Users: new(int64(3)),
		RequestsPerMinute: new(int64(7)), PageTokens: new(int64(8)),
		PerUser: &v1alpha1.UserQuota{Memories: new(int64(5))},
	}
	tn = e.expectReady(t, tn)
	e.store.fill(tenant.ID(tn.UID), 12, 0)
	e.expectReconciled(t)
	expectEqual(t, "usage", e.tenant(t).Status.Usage, &v1alpha1.TenantUsage{
		Memories: v1alpha1.CountUsage{Used: 12, Hard: 20}, Users: v1alpha1.CountUsage{Used: 1, Hard: 3},
		Storage: v1alpha1.StorageUsage{Used: resource.MustParse("48"), Hard: resource.MustParse("1Mi")},
	}, cmpopts.IgnoreFields(v1alpha1.TenantUsage{}, "ChangedAt"))
	got, _ := e.store.spec(tenant.ID(tn.UID))
	expectEqual(t, "quota", got.Quota, tenant.Quota{
		Memories: 20, Storage: 1 << 20, Users: 3, RequestsPerMinute: 7, PageTokens: 8,
		UserMemories: 5, UserConversations: tenant.NoLimit,
	})

}

func TestStorageUsageIsRoundedDown(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.store.exec("update usage set storage = 6000000000 where tenant_id = $1", tn.UID)
	e.expectReconciled(t)
	before := e.tenant(t).Status.Usage.Storage.Used
	e.store.exec("update usage set storage = storage + 5000000 where tenant_id = $1", tn.UID)
	e.expectReconciled(t)
	after := e.tenant(t).Status.Usage.Storage.Used
	expectEqual(t, "storage after 5 MB more", after.String(), before.String())
	const used, precision = 6_000_000_000, 0.02
	if got := before.Value(); got > used || float64(got) < (1-precision)*used {
		t.Errorf("storage is %s (%d bytes), want it rounded down by at most %v of %d", before.String(), got, precision, used)
	}
}

func TestPrinterColumns(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.store.fill(tenant.ID(tn.UID), 12, 3)
	e.expectReconciled(t)
	for _, test := range []struct {
		args         []string
		columns, row string // without the age; the Tenant is not suspended
	}{
		{[]string{"get", "tenants"},
			"NAME READY REASON POLICY SUSPENDED USERS MEMORIES CONVERSATIONS BLOCKED STORAGE",
			"acme True Ready Retain 1 12 3 0 48"},
		{[]string{"get", "tenants", "-o", "wide"},
			"NAME READY REASON POLICY SUSPENDED USERS MEMORIES CONVERSATIONS BLOCKED STORAGE MAXUSERS MAXMEMORIES MAXCONVERSATIONS MAXSTORAGE",
			"acme True Ready Retain 1 12 3 0 48 50 10000 500 10Gi"},
	} {
		out, err := e.kubectl(t, test.args...)
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
	e := setup(t)
	defaults := tenant.DefaultQuota()
	defaults.Users = 1
	e.use(t, controllers.Config{Defaults: defaults})
	tn := e.expectReady(t, e.newTenant("alice", "bob"))
	expectEqual(t, "users", tn.Status.Usage.Users, v1alpha1.CountUsage{Used: 2, Hard: 2})
}

func TestSuspended(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.expectReady(t, e.newTenant("alice"))
	e.expectEvents(t, "Normal Ready")
	token := e.expectOneToken(t, "alice")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = true })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Suspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "spec.suspended")
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectEvents(t, "Normal Suspended")
	if got, _ := e.store.spec(tenant.ID(tn.UID)); !got.Suspended {
		t.Error("the stored tenant is not suspended")
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = false })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectNoCondition(t, v1alpha1.Suspended)
	e.expectEvents(t, "Normal Resumed")
	expectEqual(t, "token", e.expectOneToken(t, "alice"), token)
}

func TestSuspensionIsReportedOnceStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	e.expectEvents(t, "Normal Ready")
	e.store.fail(errPostgresUnavailable, "Apply")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = true })
	_, _ = e.reconcile(t)
	e.expectNoCondition(t, v1alpha1.Suspended)
	e.store.heal()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Suspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "")

	e.store.fail(errPostgresUnavailable, "Apply")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = false })
	_, _ = e.reconcile(t)
	if !meta.IsStatusConditionTrue(e.tenant(t).Status.Conditions, v1alpha1.Suspended) {
		t.Error("the resumption is reported, although it is not stored")
	}
	e.store.heal()
	e.expectReconciled(t)
	e.expectNoCondition(t, v1alpha1.Suspended)
}

func TestPaused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Paused, metav1.ConditionTrue, v1alpha1.ReasonPaused, "mnemo.dev/paused")
	e.expectEvents(t, "Normal Paused")
	before := e.versions(t)
	e.expectReconciled(t)
	expectEqual(t, "resource versions", e.versions(t), before)
	expectEqual(t, "calls of the stores", len(e.store.counts()), 0)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Annotations = nil })
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	expectEqual(t, "conditions", len(e.tenant(t).Status.Conditions), 4)
}

func TestStoreUnavailable(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.store.fail(errPostgresUnavailable, "Apply")
	e.mustCreate(t, e.newTenant("alice"))
	for range 2 { // the second time says nothing new
		if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Reconcile: got error %v, want Unavailable", err)
		}
	}
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "PostgreSQL is unavailable")
	e.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonUnavailable, "PostgreSQL is unavailable")
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "")
	e.expectEvents(t, "Warning Unavailable")
	e.store.heal()
	e.expectReconciled(t)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectEvents(t, "Normal Ready")
}

func TestInternalErrorsAreNotPublished(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.store.fail(fault.New(fault.Internal, "password=hunter2"), "Usage", "Apply")
	e.mustCreate(t, e.newTenant())
	if _, err := e.reconcile(t); err == nil {
		t.Fatal("Reconcile succeeded, want an error")
	}
	e.expectCondition(t, v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonFailed, "operator's log")
	for _, c := range e.tenant(t).Status.Conditions {
		if strings.Contains(c.Message, "hunter2") {
			t.Errorf("condition %s publishes %q", c.Type, c.Message)
		}
	}
}
