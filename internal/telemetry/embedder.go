package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Embedder returns an embedder that records metrics about inner.
func (m *Metrics) Embedder(inner retrieve.Embedder) retrieve.Embedder {
	return &embedder{Embedder: inner, metrics: m}
}

type embedder struct {
	retrieve.Embedder
	metrics *Metrics
}

// Embed implements retrieve.Embedder.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	start := time.Now()
	vectors, err := e.Embedder.Embed(ctx, texts)
	took := time.Since(start)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, err // the caller gave up, which does not mean that the embedder is down
	}
	Observe(ctx, e.metrics.embedDuration.WithLabelValues(outcomeOf(err)), took)
	if err == nil {
		e.metrics.embeddedTexts.Add(float64(len(texts)))
	}
	e.metrics.SetDependencyUp("embedder", err == nil)
	return vectors, err
}
