package controllers_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxChanged is the number of users that a pass may change.
const maxChanged = 50

// expectPass reconciles once and checks how many tokens the pass installed.
func (e *env) expectPass(t *testing.T, installed int) {
	t.Helper()
	before := e.store.counts()["Install"]
	_, _ = e.reconcile(t)
	expectEqual(t, "tokens installed by the pass", e.store.counts()["Install"]-before, installed)
}

// TestPassIsLimited: a Tenant with many users is processed in passes, and its status
// shows the progress.
func TestPassIsLimited(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant(manyUsers(120)...))
	for _, done := range []int64{50, 100} {
		e.expectPass(t, maxChanged)
		expectEqual(t, "counts", e.tenant(t).Status.UserCounts, &v1alpha1.UserCounts{Total: 120, Ready: done})
		expectEqual(t, "listed users", len(e.tenant(t).Status.Users), 0)
		e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "are being issued")
		e.expectKstatus(t, status.InProgressStatus)
	}
	e.expectPass(t, 20)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectKstatus(t, status.CurrentStatus)
	e.expectNoWrites(t)

	// During a rotation every user has access, so the Tenant stays Ready.
	e.rotateAll(t, "1")
	for range 2 {
		e.expectPass(t, maxChanged)
		expectEqual(t, "rotated", e.tenant(t).Status.Rotated, "")
		expectEqual(t, "counts", e.tenant(t).Status.UserCounts, &v1alpha1.UserCounts{Total: 120, Ready: 120})
		e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
		e.expectKstatus(t, status.InProgressStatus)
	}
	e.expectPass(t, 20)
	expectEqual(t, "rotated", e.tenant(t).Status.Rotated, "1")
	e.expectKstatus(t, status.CurrentStatus)
}

// TestRevocationsComeFirst: of all users that a Tenant has to change, those whose
// token is to be revoked come first, and new users last.
func TestRevocationsComeFirst(t *testing.T) {
	t.Parallel()
	e := setup(t)
	users := manyUsers(120)
	e.mustCreate(t, e.newTenant(users[:60]...))
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	leaked, deleted := users[58], users[59]
	old := []tenant.Hash{
		tenant.HashSecret(e.expectOneToken(t, leaked)), tenant.HashSecret(e.expectOneToken(t, deleted)),
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Annotations = map[string]string{v1alpha1.AnnotationRotate: "1"}
		tn.Spec.Users[58].TokenGeneration = 2
		for _, name := range users[60:] {
			tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: name})
		}
	})
	e.mustDelete(t, e.secret(t, "acme-"+deleted+"-access"))
	e.expectPass(t, maxChanged)
	for i, user := range []string{leaked, deleted} {
		if slices.Contains(e.store.valid(e.id(t), user), old[i]) {
			t.Errorf("the first pass did not revoke the token of %s", user)
		}
	}
	for _, user := range users[60:] {
		if len(e.store.valid(e.id(t), user)) > 0 {
			t.Errorf("the first pass issued a token for the new user %s", user)
		}
	}
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	expectEqual(t, "tokens installed", e.store.counts()["Install"], 60+60+60)
}

// TestFailingUsersDoNotBlockOthers: more users fail than a pass changes.
func TestFailingUsersDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	users := manyUsers(130)
	refused := 0
	e.store.failIf(func(method string) error {
		if method != "Install" || refused == 110 {
			return nil
		}
		refused++
		return fault.New(fault.Invalid, "refused")
	})
	e.mustCreate(t, e.newTenant(users...))
	passes, err := e.settle(t)
	if err == nil || passes != 3 {
		t.Errorf("the round ended after %d passes with error %v, want 3 and the failures", passes, err)
	}
	expectEqual(t, "counts", e.tenant(t).Status.UserCounts, &v1alpha1.UserCounts{Total: 130, Ready: 20})
	e.expectCondition(t, v1alpha1.TokensReady, metav1.ConditionFalse, v1alpha1.ReasonFailed, "refused")
	e.store.heal()
	if _, err := e.settle(t); err != nil {
		t.Fatal(err)
	}
	expectEqual(t, "counts", e.tenant(t).Status.UserCounts, &v1alpha1.UserCounts{Total: 130, Ready: 130})
	for i := range users {
		e.expectOneToken(t, users[i])
	}
	expectEqual(t, "message", fmt.Sprint(e.tenant(t).Status.Users), "[]")
}
