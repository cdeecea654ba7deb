package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// expectKstatus checks the status that kstatus, and with it Flux, Argo CD and
// kpt, computes for the tenant acme.
func (w *world) expectKstatus(t *testing.T, want status.Status) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "acme"}, object); err != nil {
		t.Fatalf("get tenant: %v", err)
	}
	got, err := status.Compute(object)
	if err != nil {
		t.Fatalf("compute kstatus: %v", err)
	}
	if got.Status != want {
		t.Fatalf("kstatus is %s (%s), want %s", got.Status, got.Message, want)
	}
}

func TestKstatusFromCreationToReady(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.mustCreate(t, w.newTenant("alice"))
	expectEqual(t, "observed generation before the first pass", w.tenant(t).Status.ObservedGeneration, -1)
	w.expectKstatus(t, status.InProgressStatus)
	w.expectReconciled(t)
	w.expectKstatus(t, status.CurrentStatus)

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.DisplayName = "Acme GmbH" })
	w.expectKstatus(t, status.InProgressStatus) // the generation was not observed yet
	w.expectReconciled(t)
	w.expectKstatus(t, status.CurrentStatus)
}

func TestKstatusOfASuspendedTenant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.Suspended = true
	w.expectReady(t, tn)
	w.expectKstatus(t, status.CurrentStatus)
	w.expectCondition(t, v1alpha1.Suspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "")
}

func TestKstatusOfAPausedTenant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
	w.mustCreate(t, tn)
	w.expectReconciled(t)
	w.expectKstatus(t, status.InProgressStatus)
}

func TestKstatusOfAStalledTenant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "acme-alice-access"}}
	w.mustCreate(t, foreign)
	w.mustCreate(t, w.newTenant("alice"))
	w.expectReconciled(t)
	w.expectKstatus(t, status.FailedStatus)
	w.expectCondition(t, v1alpha1.Stalled, metav1.ConditionTrue, v1alpha1.ReasonSecretConflict, "acme-alice-access")
	w.expectNoCondition(t, v1alpha1.Reconciling)

	w.mustDelete(t, foreign)
	w.expectReconciled(t)
	w.expectKstatus(t, status.CurrentStatus)
	w.expectNoCondition(t, v1alpha1.Stalled)
}

func TestKstatusOfAProgressingTenant(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		method string
		reason string
	}{
		"PostgreSQL unavailable": {errAway, "Apply", v1alpha1.ReasonProgressingWithRetry},
		"Milvus unavailable":     {errMilvusAway, "Ensure", v1alpha1.ReasonProgressingWithRetry},
		"internal error":         {fault.New(fault.Internal, "bug"), "Apply", v1alpha1.ReasonProgressingWithRetry},
		"loading":                {placement.ErrLoading, "Ensure", v1alpha1.ReasonProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.mustCreate(t, w.newTenant("alice"))
			w.fake.Fail(test.err, test.method)
			_, _ = w.reconcile(t) // returns the error, except while loading
			w.expectKstatus(t, status.InProgressStatus)
			w.expectCondition(t, v1alpha1.Reconciling, metav1.ConditionTrue, test.reason, "")
			w.expectNoCondition(t, v1alpha1.Stalled)
			w.fake.Heal()
			w.expectReconciled(t)
			w.expectKstatus(t, status.CurrentStatus)
			w.expectNoCondition(t, v1alpha1.Reconciling)
		})
	}
}

func TestKstatusDuringAMigration(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice"))
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
	w.expectReconciled(t)
	w.expectKstatus(t, status.InProgressStatus)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	w.fake.Work()
	w.expectReconciled(t)
	w.expectKstatus(t, status.CurrentStatus)
}

func TestKstatusOfADeletedTenant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tn := w.newTenant("alice")
	tn.Spec.PreventDeletion = true
	tn = w.expectReady(t, tn)
	w.mustDelete(t, tn)
	w.expectReconciled(t)
	w.expectKstatus(t, status.TerminatingStatus)
}
