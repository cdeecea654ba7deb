package retrieve

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/trace"
)

// windowBonus is added, in standard deviations, to messages inside the query's window.
// It outweighs a slightly better match outside the window, but not a match that is
// much better.
const windowBonus = 2

// bucketBonus is added to the logit of the score of memories in a bucket that the query names.
const bucketBonus = 1

// lexical is the result of the search by words.
type lexical struct {
	hits      []Hit
	truncated bool // more may match
}

// words searches by words, without restriction and again within the query's window, so
// that the window always has candidates.
func (e *Engine) words(ctx context.Context, p plan) (found lexical, err error) {
	if p.query.Ranking == Dense {
		return found, nil
	}
	ctx, end := trace.Begin(ctx, trace.Lexical)
	defer end()
	r := p.request
	if p.ownersTruncated {
		r = p.unrestricted()
	}
	if found.hits, err = e.Searcher.Lexical(ctx, p.scope, r); err != nil {
		return lexical{}, err
	}
	found.truncated = len(found.hits) >= r.Limit
	if within, ok := p.within(r); ok {
		inWindow, err := e.Searcher.Lexical(ctx, p.scope, within)
		if err != nil {
			return lexical{}, err
		}
		found.hits = append(slices.Clip(found.hits), inWindow...)
		found.truncated = found.truncated || len(inWindow) >= r.Limit
	}
	return found, nil
}

// prefer raises the hits inside the query's window.
func (e *Engine) prefer(ctx context.Context, p plan, ranking []Hit) ([]Hit, error) {
	if _, ok := p.within(p.request); !ok || len(ranking) == 0 {
		return ranking, nil
	}
	live, err := e.live(ctx, p, ranking)
	if err != nil {
		return nil, err
	}
	inside := make(map[UnitID]bool, len(live))
	for _, f := range live {
		inside[f.ID] = !f.At.IsZero() && p.query.Window.Contains(f.At)
	}
	return raise(ranking, inside, windowBonus), nil
}

// preferNamed raises the memories in a bucket whose name the question contains. Names of up to two letters do not count: "us" is in many questions.
func (c *comparison) preferNamed(ranking []Hit) []Hit {
	asked := terms(c.query.Text)
	named, inside := map[string]bool{}, map[UnitID]bool{}
	for _, d := range c.all {
		if d.Heading == "" {
			continue
		}
		if _, ok := named[d.Heading]; !ok {
			name := terms(d.Heading)
			named[d.Heading] = len(d.Heading) > 2 && len(name) > 0 && !slices.ContainsFunc(name, func(t string) bool { return !slices.Contains(asked, t) })
		}
		inside[d.ID] = named[d.Heading]
	}
	return raise(ranking, inside, bucketBonus)
}

// raise adds the bonus to the units that are inside and sorts again.
func raise(ranking []Hit, inside map[UnitID]bool, bonus float64) []Hit {
	out := slices.Clone(ranking)
	for i, h := range out {
		if inside[h.ID] {
			out[i].Score = logistic(logit(h.Score) + bonus)
		}
	}
	slices.SortStableFunc(out, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return out
}

// logit is the inverse of logistic.
func logit(p float64) float64 { return math.Log(p / (1 - p)) }
