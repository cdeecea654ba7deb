package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// windowBonus is what a message of the time a question is about gains on one
// of another time, in standard deviations: enough to come before one that fits
// the words a little better, too little to come before one that alone fits.
const windowBonus = 2

// within returns the query narrowed to its window; false without one.
func (q Query) within() (Query, bool) {
	if q.Window.IsZero() || q.Kind != Chat {
		return q, false
	}
	if q.Window.From.After(q.After) {
		q.After = q.Window.From
	}
	if q.Before.IsZero() || !q.Window.To.IsZero() && q.Window.To.Before(q.Before) {
		q.Before = q.Window.To
	}
	return q, true
}

// words searches by words: everywhere, and in the query's window besides, so
// that what it holds is among the candidates however many fit better
// elsewhere. truncated says that there may be more than was given.
func (e *Engine) words(ctx context.Context, scope tenant.Scope, q Query) (hits []Hit, truncated bool, err error) {
	ctx, end := trace.Begin(ctx, trace.Lexical)
	defer end()
	hits, err = e.Searcher.Lexical(ctx, scope, q)
	if err != nil {
		return nil, false, err
	}
	truncated = len(hits) >= q.Limit
	if within, ok := q.within(); ok {
		more, err := e.Searcher.Lexical(ctx, scope, within)
		if err != nil {
			return nil, false, err
		}
		hits = append(slices.Clip(hits), more...)
		truncated = truncated || len(more) >= q.Limit
	}
	return hits, truncated, nil
}

// prefer raises what the ranking has of the query's window.
func (e *Engine) prefer(ctx context.Context, scope tenant.Scope, q Query, ranking []Hit) ([]Hit, error) {
	if _, ok := q.within(); !ok || len(ranking) == 0 {
		return ranking, nil
	}
	ids := make([]UnitID, len(ranking))
	for i, h := range ranking {
		ids[i] = h.ID
	}
	live, err := e.Searcher.Resolve(ctx, scope, q, ids)
	if err != nil {
		return nil, fmt.Errorf("resolve units: %w", err)
	}
	inside := make(map[UnitID]bool, len(live))
	for _, f := range live {
		inside[f.ID] = !f.At.IsZero() && q.Window.Contains(f.At)
	}
	return raise(ranking, func(id UnitID) bool { return inside[id] }), nil
}

// raise adds the bonus to the units that are inside and ranks all again.
func raise(ranking []Hit, inside func(UnitID) bool) []Hit {
	out := slices.Clone(ranking)
	for i, h := range out {
		if inside(h.ID) {
			out[i].Score = logistic(logit(h.Score) + windowBonus)
		}
	}
	slices.SortStableFunc(out, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return out
}

// logit undoes logistic.
func logit(p float64) float64 { return math.Log(p / (1 - p)) }
