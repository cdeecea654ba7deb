package controllers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	e := setup(t)
	users := manyUsers(1000)
	tn := e.newTenant(users...)
	e.store.failIf(func(method string) error {
		if method == "Install" && e.store.installed < 500 {
			return fault.New(fault.Invalid, "%s", strings.Repeat("refused ", 100))
		}
		return nil
	})
	e.mustCreate(t, tn)
	_, _ = e.settle(t)
	expectSmallStatus(t, e.tenant(t))
	e.store.heal()
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	tn = e.tenant(t)
	expectSmallStatus(t, tn)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 1000, Ready: 1000})
	expectEqual(t, "listed users", len(tn.Status.Users), 0)

	before := e.versions(t)
	calls := e.store.counts()["RevokeOlder"]
	e.expectReconciled(t)
	expectEqual(t, "resource versions", e.versions(t), before)
	expectEqual(t, "calls of RevokeOlder", e.store.counts()["RevokeOlder"], calls)
}

func TestManyUsersListsFailures(t *testing.T) {
	t.Parallel()
	e := setup(t)
	users := manyUsers(v1alpha1.MaxListedUsers + 2)
	e.mustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "acme-" + users[7] + "-access"}})
	e.mustCreate(t, e.newTenant(users...))
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	tn := e.tenant(t)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 52, Ready: 51})
	expectEqual(t, "listed users", tn.Status.Users, []v1alpha1.UserStatus{
		{Name: users[7], Message: "Secret acme-" + users[7] + "-access is not owned by this Tenant"},
	})

	// A pass that ends early counts the users that it did not process.
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	e.store.fail(errPostgresUnavailable, "Install")
	if _, err := e.reconcile(t); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Reconcile: %v, want Unavailable", err)
	}
	tn = e.tenant(t)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 52, Ready: 50})
	expectEqual(t, "failing users", []string{tn.Status.Users[0].Name, tn.Status.Users[1].Name}, []string{users[0], users[7]})
}

// TestConflictKeepsUserCounts: a conflict is repeated at once and must not change the
// status.
func TestConflictKeepsUserCounts(t *testing.T) {
	t.Parallel()
	e := setup(t)
	users := manyUsers(v1alpha1.MaxListedUsers + 2)
	e.expectReady(t, e.newTenant(users...))
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	e.secretWrite = func(when string) error {
		if when == "before" {
			return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, users[0], errors.New("changed"))
		}
		return nil
	}
	if _, err := e.reconcile(t); err != nil {
		t.Fatal(err)
	}
	tn := e.tenant(t)
	expectEqual(t, "counts after a conflict", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 52, Ready: 52})
	expectEqual(t, "listed users after a conflict", len(tn.Status.Users), 0)
	e.secretWrite = nil
	e.expectReconciled(t)
	expectEqual(t, "counts after the retry", e.tenant(t).Status.UserCounts, &v1alpha1.UserCounts{Total: 52, Ready: 52})
}

// TestFewUsersAreAllListed checks the largest Tenant whose users are all listed.
func TestFewUsersAreAllListed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	users := manyUsers(v1alpha1.MaxListedUsers)
	tn := e.expectReady(t, e.newTenant(users...))
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 50, Ready: 50})
	expectEqual(t, "listed users", len(tn.Status.Users), 50)
	expectSmallStatus(t, tn)
}

// TestManySecretConflictsFitTheCondition: the API server refuses a condition
// message of more than 32 KiB.
func TestManySecretConflictsFitTheCondition(t *testing.T) {
	t.Parallel()
	e := setup(t)
	users := manyUsers(60)
	for _, user := range users {
		e.mustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "acme-" + user + "-access"}})
	}
	e.mustCreate(t, e.newTenant(users...))
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonSecretConflict, "and 55 more")
	tn := e.tenant(t)
	expectEqual(t, "counts", tn.Status.UserCounts, &v1alpha1.UserCounts{Total: 60, Ready: 0})
	expectEqual(t, "listed users", len(tn.Status.Users), v1alpha1.MaxListedUsers)
	expectSmallStatus(t, tn)
}
