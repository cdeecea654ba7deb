package telemetry

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

var _ trace.Recorder = (*Metrics)(nil)

// The values of the label outcome. A metric that distinguishes more results adds
// its own values to success and error.
const (
	outcomeSuccess    = "success"
	outcomeError      = "error"
	outcomeSkipped    = "skipped"
	outcomeConsistent = "consistent"
	outcomeDrift      = "drift"
)

func outcomeOf(err error) string {
	if err != nil {
		return outcomeError
	}
	return outcomeSuccess
}

// Metrics are the metrics of a process, except those of its HTTP requests and of
// the reconciler.
type Metrics struct {
	stageDuration         *prometheus.HistogramVec
	jobDuration           *prometheus.HistogramVec
	drift                 *expiring
	repairedDrift         *prometheus.CounterVec
	sweeps                *prometheus.CounterVec
	dependencyUp          *prometheus.GaugeVec
	embedDuration         *prometheus.HistogramVec
	embeddedTexts         prometheus.Counter
	refusedTexts          prometheus.Counter
	certificates          *prometheus.GaugeVec
	importedConversations *prometheus.CounterVec
	imports               *prometheus.CounterVec
}

// durationBuckets range from a millisecond to a minute.
var durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics creates the metrics and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		stageDuration: newHistogram("mnemo_request_stage_duration_seconds",
			"Duration of a request stage: auth, embed, dense, exact, lexical, hydrate, rerank, pack or synthesize.", durationBuckets, "stage"),
		jobDuration: newHistogram("mnemo_job_duration_seconds",
			"Duration of a job attempt, by kind and outcome: success, error, snoozed (continues later, or a dependency is unavailable) or canceled.",
			append(durationBuckets, 300, 1800), "kind", "outcome"),
		drift: newExpiring(driftLife, prometheus.NewDesc("mnemo_index_drift_units",
			"Units found and repaired by the last sweep of this process, by kind: missing from the vector index (or not confirmed) or orphaned in it.",
			[]string{"kind"}, nil)),
		repairedDrift: newCounter("mnemo_index_drift_repaired_units_total", "Units repaired by sweeps, by kind: missing or orphaned.", "kind"),
		sweeps: newCounter("mnemo_index_sweeps_total",
			"Sweeps that compared the vector index with the database, by outcome: consistent or drift.", "outcome"),
		dependencyUp: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mnemo_dependency_up",
			Help: "Whether the last request to a dependency succeeded (1) or failed (0): postgresql, milvus or embedder.",
		}, []string{"dependency"}),
		embedDuration: newHistogram("mnemo_embedder_request_duration_seconds",
			"Duration of an embedding request, by outcome: success or error.", durationBuckets, "outcome"),
		embeddedTexts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mnemo_embedder_texts_total",
			Help: "Texts embedded.",
		}),
		refusedTexts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mnemo_embedder_refused_texts_total",
			Help: "Texts that the embedding endpoint refused when they were sent alone.",
		}),
		certificates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mnemo_certificate_expiry_timestamp_seconds",
			Help: "Expiry of the certificate that a dependency presented last, in Unix time.",
		}, []string{"dependency"}),
		importedConversations: newCounter("mnemo_import_conversations_total",
			"Conversations processed by imports, by outcome: success, skipped or error.", "outcome"),
		imports: newCounter("mnemo_imports_total", "Finished imports, by outcome: success or error.", "outcome"),
	}
	r.MustRegister(m.stageDuration, m.jobDuration, m.drift, m.repairedDrift, m.sweeps, m.dependencyUp, m.embedDuration, m.embeddedTexts,
		m.refusedTexts, m.certificates, m.importedConversations, m.imports)
	m.initialize()
	return m
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// initialize exports series as 0 before their first event, so that rate() sees
// that event.
func (m *Metrics) initialize() {
	for _, s := range trace.All {
		m.stageDuration.WithLabelValues(s)
	}
	for _, outcome := range []string{outcomeConsistent, outcomeDrift} {
		m.sweeps.WithLabelValues(outcome)
	}
	for _, kind := range []string{"missing", "orphaned"} {
		m.repairedDrift.WithLabelValues(kind)
	}
	for _, outcome := range []string{outcomeSuccess, outcomeSkipped, outcomeError} {
		m.importedConversations.WithLabelValues(outcome)
	}
	for _, outcome := range []string{outcomeSuccess, outcomeError} {
		m.imports.WithLabelValues(outcome)
	}
}

// RegisterProcess registers the build information and the metrics of the Go
// runtime and the process.
func RegisterProcess(r prometheus.Registerer) {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), BuildInfo())
}

// BuildInfo returns the metric mnemo_build_info.
func BuildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "mnemo_build_info",
		Help:        "Always 1; the labels name the version and the Go version.",
		ConstLabels: prometheus.Labels{"version": Version(), "go": runtime.Version()},
	})
	info.Set(1)
	return info
}

// Begin starts a stage of a request, and a span if the request is traced.
func (m *Metrics) Begin(ctx context.Context, name string) (context.Context, func()) {
	start := time.Now()
	ctx, span := tracer().Start(ctx, name)
	return ctx, func() {
		span.End()
		Observe(ctx, m.stageDuration.WithLabelValues(name), time.Since(start))
	}
}

// Observe records a duration, with the trace ID as an exemplar if the trace is
// sampled.
func Observe(ctx context.Context, o prometheus.Observer, took time.Duration) {
	span := oteltrace.SpanContextFromContext(ctx)
	if e, ok := o.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	o.Observe(took.Seconds())
}

// ObserveJob records a job attempt.
func (m *Metrics) ObserveJob(ctx context.Context, kind, outcome string, took time.Duration) {
	Observe(ctx, m.jobDuration.WithLabelValues(kind, outcome), took)
}

// ObserveSweep records the drift that a sweep found.
func (m *Metrics) ObserveSweep(d indexing.Drift) {
	outcome := outcomeConsistent
	if d != (indexing.Drift{}) {
		outcome = outcomeDrift
	}
	m.sweeps.WithLabelValues(outcome).Inc()
	for kind, n := range map[string]int{"missing": d.Missing, "orphaned": d.Orphaned} {
		m.drift.set(float64(n), kind)
		m.repairedDrift.WithLabelValues(kind).Add(float64(n))
	}
}

// SetDependencyUp records whether the last request to a dependency succeeded.
func (m *Metrics) SetDependencyUp(dependency string, up bool) {
	m.dependencyUp.WithLabelValues(dependency).Set(map[bool]float64{true: 1}[up])
}

func tracer() oteltrace.Tracer { return otel.Tracer("github.com/mnemo-dev/mnemo") }
