package retrieve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// dense is the result of the search by meaning.
type dense struct {
	vector []float32 // of the query; nil if the embedder was unavailable
	hits   []Hit
	// beyondLimit are less similar units that were scored anyway.
	beyondLimit []Hit
	exact       bool // all units were scored
	degraded    bool
}

// dense embeds the query and searches the database and the index in parallel. The units are counted while the query
// is embedded.
func (e *Engine) dense(ctx context.Context, p plan) (dense, error) {
	if p.query.Ranking == Lexical {
		return dense{}, nil
	}
	var counted Request
	var err error
	var wait sync.WaitGroup
	wait.Go(func() { counted, err = e.count(ctx, p.scope, p.request) })
	vector := e.embed(ctx, p.query.Generation, p.query.Text)
	wait.Wait()
	if vector == nil {
		return dense{degraded: true}, nil
	}
	if err != nil {
		return dense{}, err
	}
	p.request = counted
	return e.near(ctx, p, vector)
}

// count sets r.WithinExactLimit.
func (e *Engine) count(ctx context.Context, scope tenant.Scope, r Request) (Request, error) {
	if r.Owners != nil || r.Unindexed {
		return r, nil
	}
	var err error
	if r.WithinExactLimit, err = e.Searcher.WithinExactLimit(ctx, scope, r); err != nil {
		return r, fmt.Errorf("count units: %w", err)
	}
	return r, nil
}

// near searches the database and, unless it scores all units, the index in parallel. The units
// must be counted.
func (e *Engine) near(ctx context.Context, p plan, vector []float32) (dense, error) {
	indexCtx, cancel := context.WithTimeout(ctx, e.IndexTimeout)
	defer cancel()
	var indexed []Hit
	var answered bool
	var wait sync.WaitGroup
	search := func() { indexed, answered = e.index(indexCtx, p, vector) }
	if !p.scoresAll() {
		wait.Go(search)
	}
	exact, beyondLimit, coverage, err := e.exact(ctx, p, vector)
	switch {
	case err != nil || coverage.All:
		cancel() // the index's result is not needed
	case p.scoresAll(): // the user has more units now
		search()
	}
	wait.Wait()
	if err != nil {
		return dense{}, fmt.Errorf("search recent units: %w", err)
	}
	d := dense{vector: vector, hits: exact, beyondLimit: beyondLimit, degraded: coverage.Truncated || coverage.Missing}
	if d.exact = coverage.All; d.exact {
		return d, nil
	}
	d.degraded = d.degraded || !answered
	have := scores(exact)
	for _, h := range indexed {
		if _, ok := have[h.ID]; !ok {
			d.hits = append(d.hits, h)
		}
	}
	return d, nil
}

// exact searches the database, without restriction and again within the query's window. beyondLimit are
// other hits of the former.
func (e *Engine) exact(
	ctx context.Context, p plan, vector []float32,
) (hits, beyondLimit []Hit, coverage Coverage, err error) {
	ctx, end := trace.Begin(ctx, trace.Exact)
	defer end()
	if hits, coverage, err = e.Searcher.Exact(ctx, p.scope, p.request, vector); err != nil {
		return nil, nil, coverage, err
	}
	head := min(len(hits), p.request.Limit)
	hits, beyondLimit = hits[:head:head], hits[head:]
	if within, ok := p.within(p.request); ok {
		if !within.WithinExactLimit {
			if within, err = e.count(ctx, p.scope, within); err != nil {
				return nil, nil, coverage, err
			}
		}
		// Its coverage only concerns the window, so it is ignored.
		inWindow, _, err := e.Searcher.Exact(ctx, p.scope, within, vector)
		if err != nil {
			return nil, nil, coverage, err
		}
		hits = append(hits, inWindow[:min(len(inWindow), p.request.Limit)]...)
	}
	return hits, beyondLimit, p.limit(coverage), nil
}

// embed returns the query's vector, or nil if the embedder is missing, unavailable or
// slow.
func (e *Engine) embed(ctx context.Context, g placement.GenerationID, text string) []float32 {
	b := breakerOf(e, e.embedders, g)
	call, admitted := b.Start(e.Now())
	if !admitted {
		return nil
	}
	staged, end := trace.Begin(ctx, trace.Embed)
	defer end()
	limited, cancel := context.WithTimeout(staged, e.EmbedTimeout)
	defer cancel()
	vector, err := e.embedQuery(limited, g, text)
	e.note(ctx, b, call, err, "embedder")
	if err != nil {
		return nil
	}
	return vector
}

// embedQuery embeds the beginning of a query. If the embedder refuses it, a piece of a memory may be
// short enough.
func (e *Engine) embedQuery(ctx context.Context, g placement.GenerationID, text string) ([]float32, error) {
	long := beginning(text, maxQuery)
	vector, err := e.Embedders.EmbedQuery(ctx, g, long)
	if short := beginning(long, maxPiece); IsRefused(err) && short != long {
		return e.Embedders.EmbedQuery(ctx, g, short)
	}
	return vector, err
}

// index searches the index, or without one the database; answered is false if it is unavailable, or
// the filter is resolved.
func (e *Engine) index(ctx context.Context, p plan, vector []float32) (hits []Hit, answered bool) {
	if p.request.Owners != nil && !p.ownersTruncated {
		return nil, false
	}
	if p.request.Unindexed {
		hits, _, err := e.Searcher.Exact(ctx, p.scope, p.unrestricted(), vector)
		return hits[:min(len(hits), p.request.Limit)], err == nil
	}
	b := breakerOf(e, e.indexes, collection{p.location.Cell, p.location.Collection})
	call, admitted := b.Start(e.Now())
	if !admitted {
		return nil, false
	}
	staged, end := trace.Begin(ctx, trace.Dense)
	hits, err := e.Index.Search(staged, p.scope, p.location, p.request, vector)
	end()
	switch {
	case err == nil || fault.Is(err, fault.Unavailable) && !errors.Is(err, placement.ErrNoPartition):
		e.note(ctx, b, call, err, "vector store")
	default:
		// The failure concerns one tenant and was immediate: the breaker stays closed.
		b.Done(e.Now(), call, breaker.Unknown)
		e.Log.WarnContext(ctx, "search without the vector index", "tenant", p.scope.Tenant, "error", err)
	}
	return hits, err == nil
}
