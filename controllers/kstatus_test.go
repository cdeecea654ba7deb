package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// expectKstatus checks the status that kstatus, and with it Flux, Argo CD and
// kpt, computes for the tenant acme.
func (e *env) expectKstatus(t *testing.T, want status.Status) {
	t.Helper()
	got, err := status.Compute(e.unstructured(t))
	if err != nil {
		t.Fatalf("compute kstatus: %v", err)
	}
	if got.Status != want {
		t.Fatalf("kstatus is %s (%s), want %s", got.Status, got.Message, want)
	}
}

func TestKstatusFromCreationToReady(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustCreate(t, e.newTenant("alice"))
	expectEqual(t, "observed generation before the first pass", e.tenant(t).Status.ObservedGeneration, -1)
	e.expectKstatus(t, status.InProgressStatus)
	e.expectReconciled(t)
	e.expectKstatus(t, status.CurrentStatus)

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.DisplayName = "Acme GmbH" })
	e.expectKstatus(t, status.InProgressStatus) // the generation was not observed yet
	e.expectReconciled(t)
	e.expectKstatus(t, status.CurrentStatus)
}

func TestKstatusOfASuspendedTenant(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.Suspended = true
	e.expectReady(t, tn)
	e.expectKstatus(t, status.CurrentStatus)
	e.expectCondition(t, v1alpha1.Suspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "")
}

func TestKstatusOfAPausedTenant(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
	e.mustCreate(t, tn)
	e.expectReconciled(t)
	e.expectKstatus(t, status.InProgressStatus)
}

func TestKstatusOfAStalledTenant(t *testing.T) {
	t.Parallel()
	e := setup(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "acme-alice-access"}}
	e.mustCreate(t, foreign)
	e.mustCreate(t, e.newTenant("alice"))
	e.expectReconciled(t)
	e.expectKstatus(t, status.FailedStatus)
	e.expectCondition(t, v1alpha1.Stalled, metav1.ConditionTrue, v1alpha1.ReasonSecretConflict, "acme-alice-access")
	e.expectNoCondition(t, v1alpha1.Reconciling)
	e.expectNoWrites(t)

	e.mustDelete(t, foreign)
	e.expectReconciled(t)
	e.expectKstatus(t, status.CurrentStatus)
	e.expectNoCondition(t, v1alpha1.Stalled)
}

func TestKstatusOfAProgressingTenant(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		method string
		reason string
	}{
		"PostgreSQL unavailable": {errPostgresUnavailable, "Apply", v1alpha1.ReasonProgressingWithRetry},
		"Milvus unavailable":     {errMilvusUnavailable, "Ensure", v1alpha1.ReasonProgressingWithRetry},
		"internal error":         {fault.New(fault.Internal, "bug"), "Apply", v1alpha1.ReasonProgressingWithRetry},
		"loading":                {placement.ErrLoading, "Ensure", v1alpha1.ReasonProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.mustCreate(t, e.newTenant("alice"))
			e.store.fail(test.err, test.method)
			_, _ = e.reconcile(t) // returns the error, except while loading
			e.expectKstatus(t, status.InProgressStatus)
			e.expectCondition(t, v1alpha1.Reconciling, metav1.ConditionTrue, test.reason, "")
			e.expectNoCondition(t, v1alpha1.Stalled)
			e.expectNoWrites(t)
			e.store.heal()
			e.expectReconciled(t)
			e.expectKstatus(t, status.CurrentStatus)
			e.expectNoCondition(t, v1alpha1.Reconciling)
		})
	}
}

func TestKstatusDuringAMigration(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
	e.expectReconciled(t)
	e.expectKstatus(t, status.InProgressStatus)
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	e.expectNoWrites(t)
	e.store.work()
	e.expectReconciled(t)
	e.expectKstatus(t, status.CurrentStatus)
}

func TestKstatusOfADeletedTenant(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tn := e.newTenant("alice")
	tn.Spec.PreventDeletion = true
	tn = e.expectReady(t, tn)
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	e.expectKstatus(t, status.TerminatingStatus)
}
