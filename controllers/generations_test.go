package controllers_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// TestLoweredGenerationIsReported: an older manifest has lower generations, and its other fields must be applied.
func TestLoweredGenerationIsReported(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice", "bob")
	tn.Spec.Users[1].TokenGeneration = 3
	tn.Spec.Applications = []v1alpha1.TenantApplication{{Name: "bot", Scopes: []v1alpha1.ApplicationScope{"read"}, TokenGeneration: 2}}
	e.expectReady(t, tn)
	e.expectNoCondition(t, v1alpha1.GenerationLowered)
	token := e.expectOneToken(t, "bob")

	lower := func(tn *v1alpha1.Tenant) {
		tn.Spec.Users[1].TokenGeneration = 2
		tn.Spec.Applications[0].TokenGeneration = 1
		tn.Spec.Suspended = true
	}
	e.mustUpdate(t, lower)
	e.expectReconciled(t)
	expectEqual(t, "bob's token", e.expectOneToken(t, "bob"), token)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectCondition(t, v1alpha1.Suspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "")
	e.expectCondition(t, v1alpha1.GenerationLowered, metav1.ConditionTrue, v1alpha1.ReasonBelowCurrent,
		"tokenGeneration of user bob is 2 and not 3")
	e.expectCondition(t, v1alpha1.GenerationLowered, metav1.ConditionTrue, v1alpha1.ReasonBelowCurrent,
		"tokenGeneration of application bot is 1 and not 2")
	e.expectReconciled(t)
	expectEqual(t, "generation of bob's token", e.tenant(t).Status.Users[1].TokenGeneration, int64(3))

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) {
		tn.Spec.Users[1].TokenGeneration = 3
		tn.Spec.Applications[0].TokenGeneration = 2
	})
	e.expectReconciled(t)
	e.expectNoCondition(t, v1alpha1.GenerationLowered)
	expectEqual(t, "bob's token", e.expectOneToken(t, "bob"), token)
}
