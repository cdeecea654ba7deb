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
	e.record(ctx, start, len(texts), err)
	return vectors, err
}

// EmbedQuery implements retrieve.Embedder.
func (e *embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	start := time.Now()
	vector, err := e.Embedder.EmbedQuery(ctx, text)
	e.record(ctx, start, 1, err)
	return vector, err
}

// record records a call that embedded a number of texts.
func (e *embedder) record(ctx context.Context, start time.Time, texts int, err error) {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // the caller gave up, which does not mean that the embedder is down
	}
	Observe(ctx, e.metrics.embedDuration.WithLabelValues(outcomeOf(err)), time.Since(start))
	if texts == 1 && retrieve.IsRefused(err) {
		e.metrics.refusedTexts.Inc()
	}
	if err == nil {
		e.metrics.embeddedTexts.Add(float64(texts))
	}
	e.metrics.SetDependencyUp("embedder", err == nil || retrieve.IsRefused(err))
}
