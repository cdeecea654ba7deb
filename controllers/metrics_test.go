package controllers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
