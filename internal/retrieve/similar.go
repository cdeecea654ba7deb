package retrieve

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Similar returns the q.Limit live units of q.Kind that are most similar to a passage, best first. It searches as
// Search does, without the words. embed returns the vector of the passage, or nil if there is none and nothing to
// search; meanwhile, units are counted. The time limit of the index applies after it.
func (e *Engine) Similar(ctx context.Context, scope tenant.Scope, at placement.Location, q Query, embed func() []float32) ([]Similar, error) {
	wanted := max(q.Limit, 1)
	p := e.newPlan(scope, at, q, overfetch*wanted) // entries of the index may be stale
	var err error
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() { p.request, err = e.count(ctx, scope, p.request) })
	vector := embed()
	if vector == nil {
		cancel()
		wait.Wait()
		return nil, nil
	}
	defer time.AfterFunc(e.IndexTimeout, cancel).Stop()
	wait.Wait()
	if err != nil {
		return nil, err
	}
	d, err := e.near(ctx, p, vector)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(d.hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID)) })
	candidates := p.request.Limit
	if d.exact {
		candidates = wanted
	}
	described, err := e.describe(ctx, p, d.hits[:min(len(d.hits), candidates)])
	if err != nil {
		return nil, err
	}
	base := 0.0
	if b := e.background(ctx, q.Generation); b != nil {
		base = Dot(vector, b.mean[q.Kind])
	}
	var out []Similar
	for _, d := range described {
		if !d.neighbor() {
			out = append(out, Similar{Owner: d.Owner, Text: d.Text, Similarity: (Dot(d.Vector, vector) - base) / max(1-base, leastScale)})
		}
	}
	slices.SortStableFunc(out, func(a, b Similar) int { return cmp.Compare(b.Similarity, a.Similarity) })
	return out[:min(len(out), wanted)], nil
}
