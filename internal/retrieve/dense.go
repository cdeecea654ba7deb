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
	vector   []float32 // of the query; nil if the embedder was unavailable
	hits     []Hit
	rest     []Hit // less similar units that were scored anyway
	exact    bool  // all units were scored
	degraded bool
}

// dense embeds the query and searches the database and the index in parallel. The units are counted while the query
// is embedded.
func (e *Engine) dense(ctx context.Context, scope tenant.Scope, p placement.Location, q Query) (dense, error) {
	if q.Ranking == Lexical {
		return dense{}, nil
	}
	var counted Query
	var err error
	var wait sync.WaitGroup
	wait.Go(func() { counted, err = e.count(ctx, scope, q) })
	vector := e.embed(ctx, q.Generation, q.Text)
	wait.Wait()
	if vector == nil {
		return dense{degraded: true}, nil
	}
	if err != nil {
		return dense{}, err
	}
	return e.near(ctx, scope, p, counted, vector)
}

// count sets q.Few.
func (e *Engine) count(ctx context.Context, scope tenant.Scope, q Query) (Query, error) {
	if q.Owners != nil || q.Unindexed {
		return q, nil
	}
	var err error
	if q.Few, err = e.Searcher.Few(ctx, scope, q); err != nil {
		return q, fmt.Errorf("count units: %w", err)
	}
	return q, nil
}

// near searches the database and, unless it scores all units, the index in parallel. The query
// must be counted.
func (e *Engine) near(ctx context.Context, scope tenant.Scope, p placement.Location, q Query, vector []float32) (dense, error) {
	indexCtx, cancel := context.WithTimeout(ctx, e.IndexTimeout)
	defer cancel()
	var indexed []Hit
	var answered bool
	var wait sync.WaitGroup
	search := func() { indexed, answered = e.index(indexCtx, scope, p, q, vector) }
	if !q.scoresAll() {
		wait.Go(search)
	}
	exact, rest, coverage, err := e.exact(ctx, scope, q, vector)
	switch {
	case err != nil || coverage.All:
		cancel() // the index's result is not needed
	case q.scoresAll(): // the user has more units now
		search()
	}
	wait.Wait()
	if err != nil {
		return dense{}, fmt.Errorf("search recent units: %w", err)
	}
	d := dense{vector: vector, hits: exact, rest: rest, degraded: coverage.Truncated || coverage.Missing}
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

// scoresAll reports whether the index is not needed, unless the user has more units than when they were counted.
func (q Query) scoresAll() bool { return q.Few || q.Unindexed && !q.broad }

// exact searches the database, without restriction and again within the query's window. rest are
// the hits of the former beyond the limit.
func (e *Engine) exact(ctx context.Context, scope tenant.Scope, q Query, vector []float32) (hits, rest []Hit, coverage Coverage, err error) {
	ctx, end := trace.Begin(ctx, trace.Exact)
	defer end()
	if hits, coverage, err = e.Searcher.Exact(ctx, scope, q, vector); err != nil {
		return nil, nil, coverage, err
	}
	head := min(len(hits), q.Limit)
	hits, rest = hits[:head:head], hits[head:]
	if within, ok := q.within(); ok {
		if !within.Few {
			if within, err = e.count(ctx, scope, within); err != nil {
				return nil, nil, coverage, err
			}
		}
		// Its coverage only concerns the window, so it is ignored.
		more, _, err := e.Searcher.Exact(ctx, scope, within, vector)
		if err != nil {
			return nil, nil, coverage, err
		}
		hits = append(hits, more[:min(len(more), q.Limit)]...)
	}
	return hits, rest, q.limit(coverage), nil
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
func (e *Engine) index(ctx context.Context, scope tenant.Scope, p placement.Location, q Query, vector []float32) (hits []Hit, answered bool) {
	if q.Owners != nil && !q.broad {
		return nil, false
	}
	if q.Unindexed {
		return e.unrestricted(ctx, scope, q, vector)
	}
	b := breakerOf(e, e.indexes, collection{p.Cell, p.Collection})
	call, admitted := b.Start(e.Now())
	if !admitted {
		return nil, false
	}
	staged, end := trace.Begin(ctx, trace.Dense)
	hits, err := e.Index.Search(staged, scope, p, q, vector)
	end()
	switch {
	case err == nil || fault.Is(err, fault.Unavailable) && !errors.Is(err, placement.ErrNoPartition):
		e.note(ctx, b, call, err, "vector store")
	default:
		// The failure concerns one tenant and was immediate: the breaker stays closed.
		b.Done(e.Now(), call, breaker.Unknown)
		e.Log.WarnContext(ctx, "search without the vector index", "tenant", scope.Tenant, "error", err)
	}
	return hits, err == nil
}

// unrestricted searches all units of the user in the database, for a broad filter.
func (e *Engine) unrestricted(ctx context.Context, scope tenant.Scope, q Query, vector []float32) (hits []Hit, answered bool) {
	q.Owners = nil
	hits, _, err := e.Searcher.Exact(ctx, scope, q, vector)
	return hits[:min(len(hits), q.Limit)], err == nil
}
