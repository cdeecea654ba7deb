package retrieve

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/filter"
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

// Reranker scores texts for a question with a model that reads both together.
type Reranker interface {
	// Rerank returns one score per text, in order; higher is better. An error that is due
	// to the query or one of the texts satisfies IsRefused.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
}

// Index is the vector store, read at bounded staleness. internal/milvus
// implements it. Every error is of kind Unavailable unless it is a bug. It is not called
// with locations in no index.
type Index interface {
	// Search returns the best entries of the scope's user by Kind and Group, best first.
	Search(ctx context.Context, scope tenant.Scope, p placement.Location, r Request, vector []float32) ([]Hit, error)
}

// Searcher is the database side of a search. internal/postgres implements it.
type Searcher interface {
	// Match returns the newest memories that match the request's filters, and reports
	// whether there are more than it returns.
	Match(ctx context.Context, scope tenant.Scope, r Request) (ids []string, truncated bool, err error)
	// Lexical returns the best units by words, best first.
	Lexical(ctx context.Context, scope tenant.Scope, r Request) ([]Hit, error)
	// WithinExactLimit reports whether the user has so few units that Exact can score all of them.
	WithinExactLimit(ctx context.Context, scope tenant.Scope, r Request) (bool, error)
	// Exact scores units against the vector without the index, best first: all units of
	// r.Owners, all of the user if r.Unindexed or r.WithinExactLimit, otherwise the best
	// r.Limit of those that were not, or only recently, confirmed to be in the index.
	Exact(ctx context.Context, scope tenant.Scope, r Request, vector []float32) ([]Hit, Coverage, error)
	// Score returns the cosine of each of the units that has a vector of the generation.
	Score(ctx context.Context, scope tenant.Scope, g placement.GenerationID, ids []UnitID, vector []float32) ([]Hit, error)
	// Describe returns the units that are live in the scope and match the request's
	// filters except Where. For a chat, it adds those of the message before and after
	// each as neighbors. They are in no particular order.
	Describe(ctx context.Context, scope tenant.Scope, r Request, ids []UnitID) ([]Described, error)
	// Resolve returns the units that are live in the scope and match the request's
	// filters, in no particular order and without a Score.
	Resolve(ctx context.Context, scope tenant.Scope, r Request, ids []UnitID) ([]Found, error)
}

// Request is what the Engine asks of a Searcher or an Index. The filters are those of the Query.
type Request struct {
	Kind          Kind
	Text          string
	Group         int64
	From, To      time.Time
	Where         filter.Filter // only Match and Resolve apply it
	After, Before time.Time
	Generation    placement.GenerationID // of the vectors
	// Owners restricts Lexical and Exact to units of these memories, unless it is nil.
	Owners []string
	// WithinExactLimit makes Exact score all units, unless the user has more of them now.
	WithinExactLimit bool
	// Unindexed makes Exact score all units, however many: no index contains them.
	Unindexed bool
	Limit     int // number of candidates, at least 1
}

// Hit is a result of one search with its score. Higher is better: cosine (-1 to 1) for
// dense search, unbounded for lexical search.
type Hit struct {
	ID    UnitID
	Score float64
}

// Coverage reports which units Searcher.Exact scored.
type Coverage struct {
	All       bool // every unit of the user: the index is not needed
	Truncated bool // too many unconfirmed units: only the newest were scored
	Missing   bool // some unit has no vector yet
}

// Described is a unit as the ranking compares it. Neighbors, from the messages before
// and after a candidate, have only their position and Vector.
type Described struct {
	ID         UnitID
	Owner      string
	Seq        int
	Start, End int
	Human      bool      // written by the user
	At         time.Time // zero for a memory
	Text       string    // the piece; empty for a neighbor
	// Heading is the title of the conversation, for the unit to which ChatUnits adds it, or the name of the
	// memory's bucket, unless it is the default one.
	Heading    string
	Superseded bool // see Found
	Vector     []float32
}
