package retrieve

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// plan is how the Engine runs a query.
type plan struct {
	scope    tenant.Scope
	location placement.Location
	query    Query
	request  Request
	// ownersTruncated reports that query.Where matches more memories than request.Owners.
	ownersTruncated bool
}

// newPlan returns the plan of a query before its filter is resolved, for a number of candidates.
func (e *Engine) newPlan(scope tenant.Scope, location placement.Location, q Query, candidates int) plan {
	return plan{scope: scope, location: location, query: q, request: Request{
		Kind: q.Kind, Text: q.Text, Group: q.Group, From: q.From, To: q.To, Where: q.Where, After: q.After, Before: q.Before,
		Generation: q.Generation, Unindexed: e.Index == nil || !location.Indexed(), Limit: candidates,
	}}
}

// restrict resolves the filter of a query. The index knows neither metadata nor tags, and
// the best matches of a filter may rank far below other memories, so the units of all
// memories that match are scored exactly in the database.
//
// If more memories match than the store returns, the newest are scored exactly, and the
// best hits of the unfiltered searches are checked one by one: the filter matches so much
// that they include its best ones.
func (e *Engine) restrict(ctx context.Context, p plan) (plan, error) {
	if p.query.Where.IsZero() {
		return p, nil
	}
	var err error
	p.request.Owners, p.ownersTruncated, err = e.Searcher.Match(ctx, p.scope, p.request)
	if err != nil {
		return p, fmt.Errorf("resolve filter: %w", err)
	}
	if p.ownersTruncated {
		p.request.Limit = max(p.request.Limit, maxOverfetch)
	}
	return p, nil
}

// matchesNothing reports whether no memory matches the resolved filter.
func (p plan) matchesNothing() bool { return p.request.Owners != nil && len(p.request.Owners) == 0 }

// unrestricted returns the request for all units of the user, whose hits are checked afterwards.
func (p plan) unrestricted() Request {
	r := p.request
	r.Owners = nil
	return r
}

// within returns a request restricted to the query's window, and false if the query has none.
func (p plan) within(r Request) (Request, bool) {
	w := p.query.Window
	if w.IsZero() || r.Kind != Chat {
		return r, false
	}
	if w.From.After(r.After) {
		r.After = w.From
	}
	if r.Before.IsZero() || !w.To.IsZero() && w.To.Before(r.Before) {
		r.Before = w.To
	}
	return r, true
}

// scoresAll reports whether the index is not needed, unless the user has more units than when they were counted.
func (p plan) scoresAll() bool {
	return p.request.WithinExactLimit || p.request.Unindexed && !p.ownersTruncated
}

// limit returns the coverage of an exact search, which is not complete if it lacks owners.
func (p plan) limit(c Coverage) Coverage {
	return Coverage{All: c.All && !p.ownersTruncated, Truncated: c.Truncated || p.ownersTruncated, Missing: c.Missing}
}

// matching returns the hits that match the filter. Hits of request.Owners are not checked.
func (e *Engine) matching(ctx context.Context, p plan, hits []Hit) ([]Hit, error) {
	if !p.ownersTruncated {
		return hits, nil
	}
	live, err := e.live(ctx, p, hits)
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
