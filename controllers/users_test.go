package controllers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxStatusSize bounds the status of a Tenant of any number of users, in bytes
// of JSON.
const maxStatusSize = 32 << 10

func manyUsers(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("user%03d%s", i, strings.Repeat("x", 50))
	}
	return names
}

func expectSmallStatus(t *testing.T, tn *v1alpha1.Tenant) {
	t.Helper()
	raw, err := json.Marshal(tn.Status)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > maxStatusSize {
		t.Errorf("the status has %d bytes, want at most %d", len(raw), maxStatusSize)
	}
}

func TestStatusOfAThousandUsersIsSmall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	users := manyUsers(1000)
	tn := w.newTenant(users...)
	w.fake.Before = func(method string) error {
		if method == "Install" && w.fake.Installed() < 500 {
			return fault.New(fault.Invalid, "%s", strings.Repeat("refused ", 100))
		}
		return nil
	}
	w.mustCreate(t, tn)
	_, _ = w.reconcile(t)
	expectSmallStatus(t, w.tenant(t))
	w.fake.Heal()
	w.expectReconciled(t)
	tn = w.tenant(t)
	expectSmallStatus(t, tn)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 1000, Ready: 1000})
	expectEqual(t, "listed users", len(tn.Status.Users), 0)

	before := w.versions(t)
	calls := w.fake.Calls()["RevokeOlder"]
	w.expectReconciled(t)
	expectEqual(t, "resource versions", w.versions(t), before)
	expectEqual(t, "calls of RevokeOlder", w.fake.Calls()["RevokeOlder"], calls)
}

func TestManyUsersListsFailures(t *testing.T) {
	t.Parallel()
	w := setup(t)
	users := manyUsers(v1alpha1.MaxListedUsers + 2)
	w.mustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "acme-" + users[7] + "-access"}})
	w.mustCreate(t, w.newTenant(users...))
	w.expectReconciled(t)
	tn := w.tenant(t)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 52, Ready: 51})
	expectEqual(t, "listed users", tn.Status.Users, []v1alpha1.UserStatus{
		{Name: users[7], Message: "Secret acme-" + users[7] + "-access is not owned by this Tenant"},
	})

	// A pass that ends early keeps the counts of the last complete one.
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	w.fake.Fail(errAway, "Install")
	if _, err := w.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want Unavailable", err)
	}
	tn = w.tenant(t)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 52, Ready: 51})
	expectEqual(t, "failing users", []string{tn.Status.Users[0].Name, tn.Status.Users[1].Name}, []string{users[0], users[7]})
}

// TestFewUsersAreAllListed checks the largest Tenant whose users are all listed.
func TestFewUsersAreAllListed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	users := manyUsers(v1alpha1.MaxListedUsers)
	tn := w.expectReady(t, w.newTenant(users...))
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 50, Ready: 50})
	expectEqual(t, "listed users", len(tn.Status.Users), 50)
	expectSmallStatus(t, tn)
}

// TestManySecretConflictsFitTheCondition: the API server refuses a condition
// message of more than 32 KiB.
func TestManySecretConflictsFitTheCondition(t *testing.T) {
	t.Parallel()
	w := setup(t)
	users := manyUsers(60)
	for _, user := range users {
		w.mustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "acme-" + user + "-access"}})
	}
	w.mustCreate(t, w.newTenant(users...))
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "and 55 more")
	tn := w.tenant(t)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 60, Ready: 0})
	expectEqual(t, "listed users", len(tn.Status.Users), v1alpha1.MaxListedUsers)
	expectSmallStatus(t, tn)
}
