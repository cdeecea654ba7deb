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

// Observer is told what jobs come to. telemetry.Metrics is one.
type Observer interface {
	// Job is told of each attempt: done, failed, waiting (for a store) or stopped.
	Job(ctx context.Context, kind, outcome string, took time.Duration)
	// Swept is told what a sweep of all tenants found.
	Swept(found retrieve.Drift)
}

// Observe makes the client that runs with the config tell the observer, and
// puts each attempt into the trace of what committed the job.
func Observe(c *river.Config, o Observer) {
	c.Middleware = append(c.Middleware, &observed{observer: o})
}

type observerKey struct{}

// observed is around every attempt at a job.
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
	if outcome == "failed" {
		span.SetStatus(codes.Error, "failed")
	}
	m.observer.Job(ctx, job.Kind, outcome, time.Since(begin))
	return err
}

func outcomeOf(ctx context.Context, err error) string {
	var snooze *river.JobSnoozeError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &snooze):
		return "waiting"
	case errors.Is(ctx.Err(), context.Canceled):
		return "stopped"
	default:
		return "failed"
	}
}

// swept tells the observer of the context, if there is one.
func swept(ctx context.Context, found retrieve.Drift) {
	if o, ok := ctx.Value(observerKey{}).(Observer); ok {
		o.Swept(found)
	}
}
