package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
)

// Observe adds middleware that counts each attempt in the metrics and adds it to the trace
// of the request that committed the job.
func Observe(c *river.Config, m *telemetry.Metrics) {
	c.Middleware = append(c.Middleware, &observed{metrics: m})
}

type metricsKey struct{}

// observed is the middleware of every job attempt.
type observed struct {
	river.MiddlewareDefaults
	metrics *telemetry.Metrics
}

// Work implements rivertype.WorkerMiddleware.
func (m *observed) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	var metadata struct {
		Traceparent string `json:"traceparent"` // internal/postgres writes it
	}
	if json.Unmarshal(job.Metadata, &metadata) == nil && metadata.Traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": metadata.Traceparent})
	}
	begin := time.Now()
	ctx, span := otel.Tracer("github.com/mnemo-dev/mnemo").Start(ctx, "job "+job.Kind, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.Int64("job.id", job.ID), attribute.Int("job.attempt", job.Attempt)))
	defer span.End()
	err := do(context.WithValue(ctx, metricsKey{}, m.metrics))
	outcome := outcomeOf(ctx, err)
	span.SetAttributes(attribute.String("job.outcome", outcome))
	if outcome == "error" {
		span.SetStatus(codes.Error, "job failed")
	}
	m.metrics.ObserveJob(ctx, job.Kind, outcome, time.Since(begin))
	return err
}

// outcomeOf returns success, error, snoozed (the job continues later, or a dependency is
// unavailable) or canceled.
func outcomeOf(ctx context.Context, err error) string {
	var snooze *river.JobSnoozeError
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &snooze):
		return "snoozed"
	case errors.Is(ctx.Err(), context.Canceled):
		return "canceled"
	default:
		return "error"
	}
}

// swept counts the drift in the metrics of the context, if any.
func swept(ctx context.Context, found indexing.Drift) {
	if m, ok := ctx.Value(metricsKey{}).(*telemetry.Metrics); ok {
		m.ObserveSweep(found)
	}
}
