package controllers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestOutcomeOfStep(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"success":     nil,
		"stalled":     fmt.Errorf("tokens: %w", errStalled),
		"conflict":    fmt.Errorf("write: %w", apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "x", errors.New("changed"))),
		"unavailable": fmt.Errorf("apply: %w", fault.New(fault.Unavailable, "PostgreSQL is unavailable")),
		"error":       errors.New("a bug"),
	} {
		if got := outcome(err); got != want {
			t.Errorf("outcome of %v is %s, want %s", err, got, want)
		}
	}
}

func TestMetricsPassPromlint(t *testing.T) {
	t.Parallel()
	r := &TenantReconciler{metrics: newMetrics()}
	r.metrics.steps.WithLabelValues("store", "success").Observe(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.metrics.steps, r.metrics.issued)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 2 {
		t.Errorf("%d metrics, want 2", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// Tenants that wait for their author or for a normal step do not count as failing.
func TestStateOfTenant(t *testing.T) {
	t.Parallel()
	unready := func(reason string, others ...string) []metav1.Condition {
		all := []metav1.Condition{{Type: v1alpha1.Ready, Status: metav1.ConditionFalse, Reason: reason}}
		for _, name := range others {
			all = append(all, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: reason})
		}
		return all
	}
	ready := []metav1.Condition{{Type: v1alpha1.Ready, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		suspended  bool
		want       string
	}{
		"new":                  {nil, false, stateProgressing},
		"ready":                {ready, false, stateReady},
		"suspended":            {ready, true, stateSuspended},
		"waits for a step":     {unready(v1alpha1.ReasonWaiting, v1alpha1.Reconciling), false, stateProgressing},
		"partition loading":    {unready(v1alpha1.ReasonLoading, v1alpha1.Reconciling), false, stateProgressing},
		"store unavailable":    {unready(v1alpha1.ReasonUnavailable, v1alpha1.Reconciling), false, stateFailing},
		"error":                {unready(v1alpha1.ReasonFailed, v1alpha1.Reconciling), false, stateFailing},
		"adoption required":    {unready(v1alpha1.ReasonAdoptionRequired, v1alpha1.Stalled), false, stateStalled},
		"secret conflict":      {unready(v1alpha1.ReasonSecretConflict, v1alpha1.Stalled), false, stateStalled},
		"paused with an error": {unready(v1alpha1.ReasonFailed, v1alpha1.Paused), false, stateStalled},
	} {
		tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Suspended: tc.suspended}, Status: v1alpha1.TenantStatus{Conditions: tc.conditions}}
		if got := state(tenant); got != tc.want {
			t.Errorf("%s: state %s, want %s", name, got, tc.want)
		}
	}
}

func TestUnreadyAge(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }
	stalled := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "stalled", CreationTimestamp: ago(9 * time.Hour)}}
	stalled.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.Ready, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSecretConflict, LastTransitionTime: ago(2 * time.Hour)},
		{Type: v1alpha1.Stalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSecretConflict},
	}
	fresh := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "fresh", CreationTimestamp: ago(time.Hour)}}
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&tenantCollector{fake.NewClientBuilder().WithScheme(scheme).WithObjects(stalled, fresh).Build(), "mnemo.dev/shard=a"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]time.Duration{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "mnemo_tenant_oldest_unready_age_seconds" {
				if shard := m.GetLabel()[0].GetValue(); shard != "mnemo.dev/shard=a" {
					t.Errorf("shard %q, want the operator's selector", shard)
				}
				got[m.GetLabel()[1].GetValue()] = time.Duration(m.GetGauge().GetValue() * float64(time.Second)).Round(time.Minute)
			}
		}
	}
	want := map[string]time.Duration{stateProgressing: time.Hour, stateFailing: 0, stateStalled: 2 * time.Hour}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ages (-want +got):\n%s", diff)
	}
}
