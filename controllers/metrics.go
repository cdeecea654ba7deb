package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

type metrics struct {
	steps  *prometheus.HistogramVec
	issued prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mnemo_reconcile_step_duration_seconds",
			Help:    "Duration of a step of a Tenant reconciliation, by step and outcome: success, stalled (a user must act), conflict (will be retried), unavailable (a store is unavailable) or error.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"step", "outcome"}),
		issued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mnemo_tokens_issued_total",
			Help: "Tokens issued by the operator.",
		}),
	}
}

// outcome returns the outcome label of a step.
func outcome(err error) string {
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, errStalled):
		return "stalled"
	case isConflict(err):
		return "conflict"
	case fault.Is(err, fault.Unavailable):
		return "unavailable"
	}
	return "error"
}

// collectors returns the metrics that a process with the reconciler registers.
func (r *TenantReconciler) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.metrics.steps, r.metrics.issued, &tenantCollector{r.client, r.config.Selector.String()}}
}

// tenantCollector describes the Tenants in the cache when Prometheus scrapes.
type tenantCollector struct {
	client client.Reader
	// shard is the label selector of the Tenants. All replicas of an operator export the same values, and the operators
	// of other shards export those of other Tenants: queries use the maximum of each shard.
	shard string
}

// The states of a Tenant. A stalled one waits for its author, a failing one for the
// platform: alerts distinguish them.
const (
	stateReady       = "ready"
	stateSuspended   = "suspended"
	stateProgressing = "progressing"
	stateFailing     = "failing"
	stateStalled     = "stalled"
	stateDeleting    = "deleting"
)

var (
	tenantsDesc = prometheus.NewDesc("mnemo_tenants",
		"Tenants by state: ready, suspended, progressing, failing (an error, will be retried), stalled (a user must act) or deleting. shard is the label selector of the operator.", []string{"shard", "state"}, nil)
	unreadyDesc = prometheus.NewDesc("mnemo_tenant_oldest_unready_age_seconds",
		"Time since the first of the Tenants in a state became unready, by state: progressing, failing or stalled.", []string{"shard", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (c *tenantCollector) Describe(out chan<- *prometheus.Desc) {
	out <- tenantsDesc
	out <- unreadyDesc
}

// Collect implements prometheus.Collector. If Tenants cannot be listed it exports
// nothing, which shows as a gap rather than as zeros.
func (c *tenantCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var list v1alpha1.TenantList
	if err := c.client.List(ctx, &list); err != nil {
		return
	}
	counts := map[string]int{stateReady: 0, stateSuspended: 0, stateProgressing: 0, stateFailing: 0, stateStalled: 0, stateDeleting: 0}
	oldest := map[string]time.Duration{stateProgressing: 0, stateFailing: 0, stateStalled: 0}
	for i := range list.Items {
		t := &list.Items[i]
		s := state(t)
		counts[s]++
		if age, unready := oldest[s]; unready {
			oldest[s] = max(age, time.Since(unreadySince(t)))
		}
	}
	for name, n := range counts {
		out <- prometheus.MustNewConstMetric(tenantsDesc, prometheus.GaugeValue, float64(n), c.shard, name)
	}
	for name, age := range oldest {
		out <- prometheus.MustNewConstMetric(unreadyDesc, prometheus.GaugeValue, age.Seconds(), c.shard, name)
	}
}

// unreadySince returns when an unready Tenant was last ready, or its creation.
func unreadySince(t *v1alpha1.Tenant) time.Time {
	if ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.Ready); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return t.CreationTimestamp.Time
}

func state(t *v1alpha1.Tenant) string {
	ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.Ready)
	switch {
	case !t.DeletionTimestamp.IsZero():
		return stateDeleting
	case ready == nil:
		return stateProgressing
	case ready.Status == metav1.ConditionTrue && t.Spec.Suspended:
		return stateSuspended
	case ready.Status == metav1.ConditionTrue:
		return stateReady
	case meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.Stalled), meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.Paused):
		return stateStalled
	case ready.Reason == v1alpha1.ReasonUnavailable || ready.Reason == v1alpha1.ReasonFailed:
		return stateFailing
	default:
		return stateProgressing
	}
}
