package telemetry

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// driftLife is how long the result of a sweep is exported: one and a half times
// the sweep interval. The next sweep may run on another replica, which makes the
// older result of this one meaningless.
const driftLife = 15 * time.Minute

// expiring is a gauge whose values disappear when they are not updated.
type expiring struct {
	desc *prometheus.Desc
	life time.Duration
	now  func() time.Time

	mu     sync.Mutex
	values map[string]expiringValue // by label
}

type expiringValue struct {
	value float64
	until time.Time
}

func newExpiring(life time.Duration, desc *prometheus.Desc) *expiring {
	return &expiring{desc: desc, life: life, now: time.Now, values: map[string]expiringValue{}}
}

func (e *expiring) set(value float64, label string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.values[label] = expiringValue{value, e.now().Add(e.life)}
}

// Describe implements prometheus.Collector.
func (e *expiring) Describe(out chan<- *prometheus.Desc) { out <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiring) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	values := maps.Clone(e.values)
	e.mu.Unlock()
	for label, v := range values {
		if e.now().Before(v.until) {
			out <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, v.value, label)
		}
	}
}
