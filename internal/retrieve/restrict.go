package retrieve

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// restrict resolves the filter of a query. The index knows neither metadata nor tags, and
// the best matches of a filter may rank far below other memories, so the units of all
// memories that match are scored exactly in the database.
//
// A filter is broad if it matches more memories than that within q.From and q.To. Then the newest are scored
// exactly, and the best hits of the unfiltered searches are checked one by one: the
// filter matches so much that they include its best ones.
func (e *Engine) restrict(ctx context.Context, scope tenant.Scope, q Query) (Query, error) {
	if q.Where.IsZero() {
		return q, nil
	}
	var err error
	q.Owners, q.broad, err = e.Searcher.Match(ctx, scope, q)
	if err != nil {
		return q, fmt.Errorf("resolve filter: %w", err)
	}
	if q.broad {
		q.Limit = max(q.Limit, maxOverfetch)
	}
	return q, nil
}

// matchesNothing reports whether no memory matches the resolved filter.
func (q Query) matchesNothing() bool { return q.Owners != nil && len(q.Owners) == 0 }

// limit returns the coverage of an exact search of which a broad filter needs more.
func (q Query) limit(c Coverage) Coverage {
	return Coverage{All: c.All && !q.broad, Truncated: c.Truncated || q.broad, Missing: c.Missing}
}

// matching returns the hits that match a broad filter: of other queries, all.
func (e *Engine) matching(ctx context.Context, scope tenant.Scope, q Query, hits []Hit) ([]Hit, error) {
	if !q.broad {
		return hits, nil
	}
	live, err := e.live(ctx, scope, q, hits)
	if err != nil {
		return nil, err
	}
	out := make([]Hit, 0, len(live))
	for _, h := range hits {
		if _, ok := live[h.ID]; ok {
			out = append(out, h)
		}
	}
	return out, nil
}
