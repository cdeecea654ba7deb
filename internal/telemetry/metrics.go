package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

var _ trace.Recorder = (*Metrics)(nil)

// Metrics are what a process counts beside its requests.
type Metrics struct {
	stages       *prometheus.HistogramVec
	jobs         *prometheus.HistogramVec
	drift        *expiring
	drifted      *prometheus.CounterVec
	sweeps       *prometheus.CounterVec
	up           *prometheus.GaugeVec
	embeds       *prometheus.HistogramVec
	embedded     prometheus.Counter
	certificates *prometheus.GaugeVec
	landed       *prometheus.CounterVec
	imports      *prometheus.CounterVec
}

// seconds are the buckets of what takes from a millisecond to a minute.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics declares them, with those of the process and Go.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mnemo_request_stage_duration_seconds", Buckets: seconds,
			Help: "Time requests spend in a stage: auth, embed, dense, exact, lexical, hydrate, pack or synthesize.",
		}, []string{"stage"}),
		jobs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mnemo_job_duration_seconds", Buckets: append(seconds, 300, 1800),
			Help: "Time attempts at jobs take, by kind and outcome: done, failed, waiting (for a store) or stopped.",
		}, []string{"kind", "outcome"}),
		drift: newExpiring(driftLife, prometheus.NewDesc("mnemo_index_drift",
			"Differences between the stores that the last sweep of this process found and repaired: missing from the vector store, or orphaned in it.",
			[]string{"kind"}, nil)),
		drifted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_index_drift_repaired_total",
			Help: "Differences between the stores that sweeps have repaired.",
		}, []string{"kind"}),
		sweeps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_index_sweeps_total",
			Help: "Sweeps of this process that compared the stores, by whether they found a difference: clean or drift.",
		}, []string{"found"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mnemo_dependency_up",
			Help: "Whether what this process depends on answered when last asked: postgresql, milvus or embedder.",
		}, []string{"dependency"}),
		embeds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mnemo_embedder_request_duration_seconds", Buckets: seconds,
			Help: "Time the embedder takes for a batch, by outcome: ok or error.",
		}, []string{"outcome"}),
		embedded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mnemo_embedder_texts_total",
			Help: "Texts that were embedded.",
		}),
		certificates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mnemo_certificate_expiry_timestamp_seconds",
			Help: "When the certificate that a dependency showed last expires, in Unix time.",
		}, []string{"dependency"}),
		landed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_import_conversations_total",
			Help: "Conversations of imported files that are done, by outcome: stored, skipped or failed.",
		}, []string{"outcome"}),
		imports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mnemo_imports_total",
			Help: "Imports of files that have ended, by outcome: done or failed.",
		}, []string{"outcome"}),
	}
	r.MustRegister(m.stages, m.jobs, m.drift, m.drifted, m.sweeps, m.up, m.embeds, m.embedded, m.certificates, m.landed, m.imports)
	m.zero()
	return m
}

// zero makes what has not happened yet 0, and not absent.
func (m *Metrics) zero() {
	for _, s := range trace.All {
		m.stages.WithLabelValues(s)
	}
	for _, found := range []string{"clean", "drift"} {
		m.sweeps.WithLabelValues(found)
	}
	for _, kind := range []string{"missing", "orphaned"} {
		m.drifted.WithLabelValues(kind)
	}
	for _, outcome := range []string{stored, string(chat.EntrySkipped), string(chat.EntryFailed)} {
		m.landed.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"done", "failed"} {
		m.imports.WithLabelValues(outcome)
	}
}

// RegisterProcess adds the build, and what Go and the system say of the process.
func RegisterProcess(r prometheus.Registerer) {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), BuildInfo())
}

// BuildInfo is 1, with the build in its labels.
func BuildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "mnemo_build_info",
		Help:        "1, for the build in the labels.",
		ConstLabels: prometheus.Labels{"version": Version(), "go": runtime.Version()},
	})
	info.Set(1)
	return info
}

// Begin begins a stage of a request, and a span when it is traced.
func (m *Metrics) Begin(ctx context.Context, name string) (context.Context, func()) {
	begin := time.Now()
	ctx, span := tracer().Start(ctx, name)
	return ctx, func() {
		span.End()
		Observe(ctx, m.stages.WithLabelValues(name), time.Since(begin))
	}
}

// Observe notes a duration, with the trace it belongs to when that is kept.
func Observe(ctx context.Context, o prometheus.Observer, took time.Duration) {
	span := oteltrace.SpanContextFromContext(ctx)
	if e, ok := o.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	o.Observe(took.Seconds())
}

// Job notes an attempt at a job.
func (m *Metrics) Job(ctx context.Context, kind, outcome string, took time.Duration) {
	Observe(ctx, m.jobs.WithLabelValues(kind, outcome), took)
}

// Swept notes what a sweep found.
func (m *Metrics) Swept(d retrieve.Drift) {
	found := "clean"
	if d != (retrieve.Drift{}) {
		found = "drift"
	}
	m.sweeps.WithLabelValues(found).Inc()
	for kind, n := range map[string]int{"missing": d.Missing, "orphaned": d.Orphaned} {
		m.drift.set(float64(n), kind)
		m.drifted.WithLabelValues(kind).Add(float64(n))
	}
}

// Asked notes whether a dependency answered.
func (m *Metrics) Asked(dependency string, err error) {
	m.up.WithLabelValues(dependency).Set(map[bool]float64{true: 1}[err == nil])
}

// Watch asks dependencies by name again and again whether they answer, until
// the context ends. It logs why one does not, and when it does again.
func (m *Metrics) Watch(ctx context.Context, every time.Duration, ask map[string]func(context.Context) error, log *slog.Logger) {
	every = cmp.Or(every, 15*time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	away := map[string]bool{}
	for {
		for name, do := range ask {
			limited, cancel := context.WithTimeout(ctx, every/2)
			err := do(limited)
			cancel()
			if ctx.Err() != nil {
				return
			}
			m.Asked(name, err)
			switch {
			case err != nil && !away[name]:
				log.WarnContext(ctx, "a store does not answer", "store", name, "error", err)
			case err == nil && away[name]:
				log.InfoContext(ctx, "the store answers again", "store", name)
			}
			away[name] = err != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func tracer() oteltrace.Tracer { return otel.Tracer("github.com/mnemo-dev/mnemo") }
