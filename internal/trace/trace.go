package trace

import (
	"context"
	"slices"
	"sync"
)

// The stages of a request.
const (
	Auth       = "auth"       // authenticate the token
	Embed      = "embed"      // compute the vector of a text
	Dense      = "dense"      // search the vector index
	Exact      = "exact"      // score vectors in the database
	Lexical    = "lexical"    // search the database by keywords
	Hydrate    = "hydrate"    // read the results under the caller's scope
	Rerank     = "rerank"     // sort the results again with a reranking model
	Pack       = "pack"       // fit excerpts into the token budget
	Synthesize = "synthesize" // write the answer with a chat model
)

// All lists every stage.
var All = []string{Auth, Embed, Dense, Exact, Lexical, Hydrate, Rerank, Pack, Synthesize}

// Recorder records stages. It must be safe for concurrent use.
type Recorder interface {
	// Begin starts a stage, one of All. The caller passes the returned context to
	// the work of the stage and calls end once.
	Begin(ctx context.Context, stage string) (_ context.Context, end func())
}

type key struct{}

// With returns a context whose stages are recorded by r.
func With(ctx context.Context, r Recorder) context.Context { return context.WithValue(ctx, key{}, r) }

// Begin starts a stage, and end finishes it. Without a Recorder in the context both
// do nothing.
func Begin(ctx context.Context, stage string) (_ context.Context, end func()) {
	if r, ok := ctx.Value(key{}).(Recorder); ok {
		return r.Begin(ctx, stage)
	}
	return ctx, func() {}
}

type degradedKey struct{}

// Degraded collects the stages that a request had to do without. It is safe for
// concurrent use.
type Degraded struct {
	mu     sync.Mutex
	stages []string
}

// Stages returns the stages, each once, in alphabetical order.
func (d *Degraded) Stages() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.stages)
	return slices.Compact(slices.Clone(d.stages))
}

// WithDegraded returns a context whose failed stages are collected in d.
func WithDegraded(ctx context.Context, d *Degraded) context.Context {
	return context.WithValue(ctx, degradedKey{}, d)
}

// Degrade notes that the result is made without a stage. Without a Degraded in the
// context it does nothing.
func Degrade(ctx context.Context, stage string) {
	if d, ok := ctx.Value(degradedKey{}).(*Degraded); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stages = append(d.stages, stage)
	}
}
