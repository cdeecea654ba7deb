package apiserver

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the server's own; labels are bounded by the route table.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
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
	}
	r.MustRegister(m.requests, m.duration, m.calls)
	return m
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	if route == unmatched {
		method = unmatched // it is the client's word
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

// observeCall counts a call over MCP.
func (m *metrics) observeCall(call string, failed bool) {
	result := "ok"
	if failed {
		result = "error"
	}
	m.calls.WithLabelValues(call, result).Inc()
}
