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

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Observer records job attempts and sweeps. telemetry.Metrics implements it.
type Observer interface {
	// ObserveJob records an attempt, with the outcome success, error, snoozed (it
	// continues later, or a dependency is unavailable) or canceled.
	ObserveJob(ctx context.Context, kind, outcome string, took time.Duration)
	// ObserveSweep records the drift that a slice of a sweep found.
	ObserveSweep(found retrieve.Drift)
}

// Observe adds middleware that reports each attempt to the observer and adds it to the
// trace of the request that committed the job.
func Observe(c *river.Config, o Observer) {
	c.Middleware = append(c.Middleware, &observed{observer: o})
}

type observerKey struct{}

// observed is the middleware of every job attempt.
type observed struct {
	river.MiddlewareDefaults
	observer Observer
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
	err := do(context.WithValue(ctx, observerKey{}, m.observer))
	outcome := outcomeOf(ctx, err)
	span.SetAttributes(attribute.String("job.outcome", outcome))
	if outcome == "error" {
		span.SetStatus(codes.Error, "job failed")
	}
	m.observer.ObserveJob(ctx, job.Kind, outcome, time.Since(begin))
	return err
}

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

// swept reports the drift to the observer in the context, if any.
func swept(ctx context.Context, found retrieve.Drift) {
	if o, ok := ctx.Value(observerKey{}).(Observer); ok {
		o.ObserveSweep(found)
	}
}
