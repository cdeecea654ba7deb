package controllers

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
)

// SetupWithManager registers the reconciler. Secrets are not watched but read once a minute.
func (r *CellReconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("cell").
		For(&v1alpha1.Cell{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{RateLimiter: rateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up cell controller: %w", err)
	}
	return nil
}

// cellChanged selects changes of Cells that can change where a Tenant is placed: the
// spec was stored, or the Cell became ready.
var cellChanged = predicate.Funcs{
	CreateFunc: func(ctrlevent.CreateEvent) bool { return false },
	DeleteFunc: func(ctrlevent.DeleteEvent) bool { return true },
	UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Cell)
		after, is := e.ObjectNew.(*v1alpha1.Cell)
		if !ok || !is {
			return false
		}
		return before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.Ready) != meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.Ready)
	},
}

// cellMetrics describe the Cells, of which there are few.
type cellMetrics struct{ tenants, units, ready *prometheus.GaugeVec }

func newCellMetrics() *cellMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"cell"})
	}
	return &cellMetrics{
		tenants: gauge("mnemo_cell_tenants", "Tenants that are placed in a cell or move to it."),
		units:   gauge("mnemo_cell_units", "Units of these tenants, counted once an hour."),
		ready:   gauge("mnemo_cell_ready", "1 if the operator reaches the cell's Milvus instance, otherwise 0."),
	}
}

func (m *cellMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.tenants, m.units, m.ready}
}

func (m *cellMetrics) set(c *v1alpha1.Cell) {
	m.tenants.WithLabelValues(c.Name).Set(float64(c.Status.Tenants))
	m.units.WithLabelValues(c.Name).Set(float64(c.Status.Units))
}

func (m *cellMetrics) setReady(name string, ready bool) {
	value := 0.0
	if ready {
		value = 1
	}
	m.ready.WithLabelValues(name).Set(value)
}

func (m *cellMetrics) remove(name string) {
	for _, g := range []*prometheus.GaugeVec{m.tenants, m.units, m.ready} {
		g.DeleteLabelValues(name)
	}
}
