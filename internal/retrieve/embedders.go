package retrieve

import (
	"context"
	"errors"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// Embedders are the models of this process, by the generation of their vectors.
type Embedders map[placement.GenerationID]Embedder

// ErrNoEmbedder means that this process has no model for a generation.
var ErrNoEmbedder = errors.New("the server is not configured with the model of these vectors")

// get returns the embedder of a generation, or Unavailable.
func (e Embedders) get(g placement.GenerationID) (Embedder, error) {
	if one, ok := e[g]; ok {
		return one, nil
	}
	return nil, fault.Wrap(fault.Unavailable, ErrNoEmbedder, "embed for generation %d", g)
}

// Embed embeds passages with the model of a generation; ErrNoEmbedder.
func (e Embedders) Embed(ctx context.Context, g placement.GenerationID, texts []string) ([][]float32, error) {
	one, err := e.get(g)
	if err != nil {
		return nil, err
	}
	return one.Embed(ctx, texts)
}

// EmbedQuery embeds a search query with the model of a generation; ErrNoEmbedder.
func (e Embedders) EmbedQuery(ctx context.Context, g placement.GenerationID, text string) ([]float32, error) {
	one, err := e.get(g)
	if err != nil {
		return nil, err
	}
	vector, err := one.EmbedQuery(ctx, text)
	if err == nil && len(vector) != one.Dimensions() {
		err = fmt.Errorf("embedding has %d dimensions instead of %d", len(vector), one.Dimensions())
	}
	return vector, err
}
