package apiserver

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	stages "github.com/mnemo-dev/mnemo/internal/trace"
)

// metrics are the metrics of HTTP requests. The route table bounds their labels.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	degraded *prometheus.CounterVec
	unranked *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, cache *Cache) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_http_requests_total",
			Help: "HTTP requests except probes, by method, route pattern and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mnemo_http_request_duration_seconds",
			Help:    "Duration from a request's headers to its response, by method and route pattern, without probes.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_mcp_calls_total",
			Help: "MCP tool calls and resource reads, by name and outcome: success or error.",
		}, []string{"call", "outcome"}),
		degraded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_http_degraded_responses_total",
			Help: "Responses with X-Degraded: vector, computed without the complete vector index, by route pattern.",
		}, []string{"route"}),
		unranked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_http_unreranked_responses_total",
			Help: "Responses with X-Degraded: rerank, in the order without the configured reranking model, by route pattern.",
		}, []string{"route"}),
	}
	r.MustRegister(m.requests, m.duration, m.calls, m.degraded, m.unranked)
	cache.register(r)
	return m
}

// register registers the metrics of the cache.
func (c *Cache) register(r prometheus.Registerer) {
	const name, help = "mnemo_token_cache_requests_total", "Token cache lookups, by outcome: hit or miss."
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"outcome": "hit"}},
			func() float64 { return float64(c.hits.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"outcome": "miss"}},
			func() float64 { return float64(c.misses.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mnemo_token_cache_entries", Help: "Tokens in the cache."},
			func() float64 { c.mu.RLock(); defer c.mu.RUnlock(); return float64(len(c.entries)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "mnemo_token_cache_bypassed",
			Help: "1 while the replica cannot receive revocations and looks up every token in the database.",
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

// observe records a response, with the trace ID as an exemplar if the trace is
// sampled. Probes are excluded: they would hide the errors of a quiet server.
func (m *metrics) observe(ctx context.Context, c *fiber.Ctx, route string, took time.Duration) {
	if route == pathHealthz || route == pathReadyz {
		return
	}
	method := c.Method()
	if route == unmatched {
		method = unmatched // the client can send any method
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(c.Response().StatusCode())).Inc()
	missing := string(c.Response().Header.Peek(headerDegraded))
	if strings.Contains(missing, degradedVector) {
		m.degraded.WithLabelValues(route).Inc()
	}
	if strings.Contains(missing, stages.Rerank) {
		m.unranked.WithLabelValues(route).Inc()
	}
	duration := m.duration.WithLabelValues(method, route)
	span := trace.SpanContextFromContext(ctx)
	if e, ok := duration.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	duration.Observe(took.Seconds())
}

// observeCall records an MCP call.
func (m *metrics) observeCall(call string, failed bool) {
	outcome := "success"
	if failed {
		outcome = "error"
	}
	m.calls.WithLabelValues(call, outcome).Inc()
}
