package indexing

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

const (
	// fingerprintText is embedded to recognize a model. Changing it invalidates the
	// stored fingerprints.
	fingerprintText = "The lighthouse keeper writes the weather and the passing ships into a blue notebook every evening."
	// sameModel is the minimum cosine of two vectors of the text by one model. Hardware
	// and quantization change it by less than 0.01; other models have one near 0.
	sameModel = 0.9
	// guardEvery is the interval at which the model is checked.
	guardEvery = 10 * time.Minute
)

// Fingerprints stores the vector of a fixed text for each generation. internal/postgres
// implements it.
type Fingerprints interface {
	// EnsureFingerprint stores the vector unless there is one, and returns the stored
	// one.
	EnsureFingerprint(ctx context.Context, g placement.GenerationID, vector []float32) ([]float32, error)
}

// guarded is an embedder that fails if another model answers under its name.
type guarded struct {
	retrieve.Embedder
	generation placement.GenerationID
	stored     Fingerprints
	now        func() time.Time

	turn    chan struct{} // filled during a check
	checked time.Time     // the latest success
}

// Guard returns an embedder that fails with Unavailable while the endpoint serves another
// model than the one whose vectors are stored. It embeds a fixed text before the first
// use and every ten minutes.
func Guard(e retrieve.Embedder, g placement.GenerationID, stored Fingerprints) retrieve.Embedder {
	return &guarded{Embedder: e, generation: g, stored: stored, now: time.Now, turn: make(chan struct{}, 1)}
}

// Embed implements Embedder.
func (g *guarded) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.Embedder.Embed(ctx, texts)
}

// EmbedQuery implements Embedder.
func (g *guarded) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	return g.Embedder.EmbedQuery(ctx, text)
}

func (g *guarded) check(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !g.checked.IsZero() && g.now().Before(g.checked.Add(guardEvery)) {
		return nil
	}
	vectors, err := g.Embedder.Embed(ctx, []string{fingerprintText})
	if err == nil && len(vectors) != 1 {
		err = fmt.Errorf("the embedder returned %d vectors for one text", len(vectors))
	}
	if retrieve.IsRefused(err) { // every model accepts the text, so the cause is the configuration
		return fault.New(fault.Unavailable, "the endpoint of model %s refuses every text: %v", g.Model(), err)
	}
	if err != nil {
		return err
	}
	stored, err := g.stored.EnsureFingerprint(ctx, g.generation, vectors[0])
	if err != nil {
		return fmt.Errorf("get fingerprint of the embedding model: %w", err)
	}
	var cosine float64
	if len(stored) == len(vectors[0]) {
		cosine = retrieve.Dot(stored, vectors[0])
	}
	if cosine < sameModel {
		return fault.New(fault.Unavailable, "the endpoint of model %s now serves a different model (cosine %.2f): "+
			"its vectors are not stored; restore the model, or configure another revision (docs/models.md)", g.Model(), cosine)
	}
	g.checked = g.now()
	return nil
}
