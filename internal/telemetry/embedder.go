package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Embedder counts what an embedder does.
func (m *Metrics) Embedder(inner retrieve.Embedder) retrieve.Embedder {
	return &embedder{Embedder: inner, metrics: m}
}

type embedder struct {
	retrieve.Embedder
	metrics *Metrics
}

// Embed implements retrieve.Embedder.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	begin := time.Now()
	vectors, err := e.Embedder.Embed(ctx, texts)
	took := time.Since(begin)
	switch {
	case err == nil:
		Observe(ctx, e.metrics.embeds.WithLabelValues("ok"), took)
		e.metrics.embedded.Add(float64(len(texts)))
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, err // whoever asked went away: it says nothing of the embedder
	default:
		Observe(ctx, e.metrics.embeds.WithLabelValues("error"), took)
	}
	e.metrics.Asked("embedder", err)
	return vectors, err
}
