package trace

import "context"

// The stages of a request.
const (
	Auth       = "auth"       // whose token it is
	Embed      = "embed"      // a text becomes a vector
	Dense      = "dense"      // the vector store is searched
	Exact      = "exact"      // vectors are scored in the database
	Lexical    = "lexical"    // the database is searched by words
	Hydrate    = "hydrate"    // what was found is read under the caller's scope
	Pack       = "pack"       // excerpts are fitted to the token budget
	Synthesize = "synthesize" // a chat model writes the answer
)

// All is every stage.
var All = []string{Auth, Embed, Dense, Exact, Lexical, Hydrate, Pack, Synthesize}

// Recorder is told of stages. It is safe for concurrent use.
type Recorder interface {
	// Begin begins a stage, one of All; end, called once, ends it. What the
	// stage calls is given the context returned.
	Begin(ctx context.Context, stage string) (_ context.Context, end func())
}

type key struct{}

// With returns a context whose stages go to r.
func With(ctx context.Context, r Recorder) context.Context { return context.WithValue(ctx, key{}, r) }

// Begin begins a stage; end ends it. Without a Recorder both do nothing.
func Begin(ctx context.Context, stage string) (_ context.Context, end func()) {
	if r, ok := ctx.Value(key{}).(Recorder); ok {
		return r.Begin(ctx, stage)
	}
	return ctx, func() {}
}
