package retrieve

import (
	"context"
	"errors"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Embedder computes embeddings.
type Embedder interface {
	// Embed returns one L2-normalized vector per passage, a text to be found, in order.
	// An error that is due to one of the texts satisfies IsRefused.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery returns the L2-normalized vector of a search query. Models may embed
	// queries and passages differently. An error that is due to the text satisfies IsRefused.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
	// Model names the model: vectors of different models are not comparable.
	// Dimensions is the length of its vectors.
	Model() string
	Dimensions() int
}

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

// Index is the vector store, read at bounded staleness. internal/milvus
// implements it. Every error is of kind Unavailable unless it is a bug. It is not called
// with locations in no index.
type Index interface {
	// Search returns the best entries of the scope's user, best first.
	Search(ctx context.Context, scope tenant.Scope, p placement.Location, q Query, vector []float32) ([]Hit, error)
}

// Searcher is the database side of a search. internal/postgres implements it.
type Searcher interface {
	// Match returns the newest memories that match q.Where, q.Group, q.From and q.To, and
	// reports whether there are more than it returns.
	Match(ctx context.Context, scope tenant.Scope, q Query) (ids []string, more bool, err error)
	// Lexical returns the best units by words, best first. Unless q.Owners is nil, it
	// returns only units of these memories, as does Exact.
	Lexical(ctx context.Context, scope tenant.Scope, q Query) ([]Hit, error)
	// Few reports whether the user has so few units that Exact scores all of them.
	Few(ctx context.Context, scope tenant.Scope, q Query) (bool, error)
	// Exact scores units against the vector without the index, best first: all of the
	// user's units if q.Few or q.Unindexed, all of q.Owners unless it is nil, otherwise the best q.Limit of those that were not,
	// or only recently, confirmed to be in the index. See Coverage.
	Exact(ctx context.Context, scope tenant.Scope, q Query, vector []float32) ([]Hit, Coverage, error)
	// Score returns the cosine of each of the units that has a vector of the generation.
	Score(ctx context.Context, scope tenant.Scope, g placement.GenerationID, ids []UnitID, vector []float32) ([]Hit, error)
	// Describe returns the units that are live in the scope and match the query's
	// filters, and, for a chat, those of the message before and after each as
	// neighbors, in no particular order.
	Describe(ctx context.Context, scope tenant.Scope, q Query, ids []UnitID) ([]Described, error)
	// Resolve returns the units that are live in the scope and match the query's
	// filters, including Where, in no particular order and without a Score.
	Resolve(ctx context.Context, scope tenant.Scope, q Query, ids []UnitID) ([]Found, error)
}

// Coverage reports which units Searcher.Exact scored.
type Coverage struct {
	All       bool // every unit of the user: the index is not needed
	Truncated bool // too many unconfirmed units: only the newest were scored
	Missing   bool // some unit has no vector yet
}
