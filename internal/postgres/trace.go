package postgres

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced stores the current trace in each inserted job, if it is sampled, so
// that the job becomes part of the trace (internal/jobs).
type traced struct{ river.MiddlewareDefaults }

// InsertMany implements rivertype.JobInsertMiddleware.
func (*traced) InsertMany(ctx context.Context, many []*rivertype.JobInsertParams,
	do func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return do(ctx)
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for _, job := range many {
		metadata := map[string]json.RawMessage{}
		if len(job.Metadata) > 0 && json.Unmarshal(job.Metadata, &metadata) != nil {
			continue // invalid metadata stays unchanged
		}
		quoted, err := json.Marshal(carrier["traceparent"])
		if err != nil {
			return nil, err
		}
		metadata["traceparent"] = quoted
		if job.Metadata, err = json.Marshal(metadata); err != nil {
			return nil, err
		}
	}
	return do(ctx)
}
