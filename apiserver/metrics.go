package apiserver

import (
	"context"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// metrics are the server's own; labels are bounded by the route table.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	degraded *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, cache *Cache) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_http_requests_total",
			Help: "Requests answered, by method, route pattern and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mnemo_http_request_duration_seconds",
			Help:    "Time from a request's headers to its answer, by method and route pattern.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_mcp_calls_total",
			Help: "Calls of MCP tools and readings of MCP resources, by name and result (ok, error).",
		}, []string{"call", "result"}),
		degraded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_http_degraded_total",
			Help: "Answers made without all of the vector store, by route pattern.",
		}, []string{"route"}),
	}
	r.MustRegister(m.requests, m.duration, m.calls, m.degraded)
	cache.register(r)
	return m
}

// register adds what the cache does.
func (c *Cache) register(r prometheus.Registerer) {
	const name, help = "mnemo_token_cache_requests_total", "Tokens looked up in the cache, by outcome: hit or miss."
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"outcome": "hit"}},
			func() float64 { return float64(c.hits.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"outcome": "miss"}},
			func() float64 { return float64(c.misses.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mnemo_token_cache_entries", Help: "Tokens in the cache."},
			func() float64 { c.mu.RLock(); defer c.mu.RUnlock(); return float64(len(c.entries)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mnemo_token_cache_bypassed",
			Help: "1 while revocations cannot be heard and every token is asked of the database.",
		}, func() float64 {
			c.mu.RLock()
			defer c.mu.RUnlock()
			if c.bypass {
				return 1
			}
			return 0
		}),
	)
}

// observe counts an answer. A duration that is part of a kept trace names it.
func (m *metrics) observe(ctx context.Context, c *fiber.Ctx, route string, took time.Duration) {
	method := c.Method()
	if route == unmatched {
		method = unmatched // it is the client's word
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(c.Response().StatusCode())).Inc()
	if len(c.Response().Header.Peek(headerDegraded)) > 0 {
		m.degraded.WithLabelValues(route).Inc()
	}
	duration := m.duration.WithLabelValues(method, route)
	span := trace.SpanContextFromContext(ctx)
	if e, ok := duration.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	duration.Observe(took.Seconds())
}

// observeCall counts a call over MCP.
func (m *metrics) observeCall(call string, failed bool) {
	result := "ok"
	if failed {
		result = "error"
	}
	m.calls.WithLabelValues(call, result).Inc()
}
