package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	defaultEmbedTimeout = 2 * time.Second
	defaultIndexTimeout = time.Second
	// Each search returns four times the limit, because pieces of one text are
	// merged and stale entries are dropped; at least 100, so that means and
	// deviations are meaningful; and more than 400 only if the limit is higher.
	overfetch     = 4
	minCandidates = 100
	maxOverfetch  = 400
)

// Config holds the dependencies of an Engine. Searcher and Embedders are required.
type Config struct {
	Searcher  Searcher
	Index     Index // nil in a process without one: the database scores all units
	Embedders Embedders
	Log       *slog.Logger     // logs availability changes of the index and embedder; may be nil
	Now       func() time.Time // time.Now when nil
	// EmbedTimeout bounds the wait for the query's embedding (default 2 s);
	// IndexTimeout bounds the wait for the index (default 1 s).
	EmbedTimeout time.Duration
	IndexTimeout time.Duration
	// Reranker sorts the best RerankPassages results (default 20) again; optional.
	// RerankTimeout bounds the wait for it (default 300 ms).
	Reranker       Reranker
	RerankTimeout  time.Duration
	RerankPassages int
}

// Engine searches units by words and by meaning.
type Engine struct {
	Config
	backgrounds backgrounds
	reranker    breaker.Breaker
	mu          sync.Mutex
	embedders   map[placement.GenerationID]*breaker.Breaker
	indexes     map[collection]*breaker.Breaker
}

// New returns an Engine.
func New(c Config) *Engine {
	c.EmbedTimeout = cmp.Or(c.EmbedTimeout, defaultEmbedTimeout)
	c.IndexTimeout = cmp.Or(c.IndexTimeout, defaultIndexTimeout)
	c.RerankTimeout = cmp.Or(c.RerankTimeout, defaultRerankTimeout)
	c.RerankPassages = cmp.Or(c.RerankPassages, defaultRerankPassages)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Engine{Config: c, embedders: map[placement.GenerationID]*breaker.Breaker{}, indexes: map[collection]*breaker.Breaker{}, backgrounds: newBackgrounds()}
}

// Search returns the q.Limit best units in the scope, best first, with at most one
// unit per message or memory. PostgreSQL confirmed, during the call, that each is live and in the
// scope. If the index or the embedder is unavailable, the result is Degraded; only
// PostgreSQL causes an error.
func (e *Engine) Search(ctx context.Context, scope tenant.Scope, at placement.Location, q Query) (Result, error) {
	q.Limit = max(q.Limit, 1)
	candidates := max(q.Limit, min(overfetch*q.Limit, maxOverfetch), minCandidates)
	p, err := e.restrict(ctx, e.newPlan(scope, at, q, candidates))
	if err != nil || p.matchesNothing() {
		return Result{}, err
	}
	words, d, err := e.searchBoth(ctx, p)
	if err != nil {
		return Result{}, err
	}
	if d.vector != nil {
		scored, err := e.score(ctx, p, words, d)
		if err != nil {
			return Result{}, err
		}
		d.hits = append(d.hits, scored...)
	}
	fused, err := e.matching(ctx, p, Fuse(words.hits, d.hits, words.truncated))
	if err != nil {
		return Result{}, err
	}
	r, err := e.rank(ctx, p, fused, words.hits, d.vector)
	if err != nil {
		return Result{}, err
	}
	found, err := e.resolve(ctx, p, r.above(q.MinScore), r.live)
	if err != nil {
		return Result{}, err
	}
	e.rerank(ctx, q, found, r.texts)
	return Result{Found: found, Calibrated: r.calibrated, Degraded: d.degraded}, nil
}

// searchBoth searches by words and by meaning at once. When one search fails, the other is canceled.
func (e *Engine) searchBoth(ctx context.Context, p plan) (words lexical, d dense, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wordsErr error
	var wait sync.WaitGroup
	wait.Go(func() {
		if words, wordsErr = e.words(ctx, p); wordsErr != nil {
			cancel()
		}
	})
	d, err = e.dense(ctx, p)
	if err != nil {
		cancel()
	}
	wait.Wait()
	if wordsErr != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = fmt.Errorf("search by words: %w", wordsErr)
	}
	return words, d, err
}

// ranked is a ranking, best first.
type ranked struct {
	hits  []Hit
	live  map[UnitID]Found  // the first hits, if PostgreSQL already confirmed that they are live
	texts map[UnitID]string // of the live ones
	// calibrated reports that scores are probabilities of being relevant.
	calibrated bool
}

// above returns the hits with at least the score, by default DefaultMinScore, or all hits if the
// scores are not calibrated.
func (r ranked) above(minScore *float64) []Hit {
	if !r.calibrated {
		return r.hits
	}
	least := DefaultMinScore
	if minScore != nil {
		least = *minScore
	}
	i := slices.IndexFunc(r.hits, func(h Hit) bool { return h.Score < least })
	if i < 0 {
		return r.hits
	}
	return r.hits[:i]
}

// rank applies what the searches do not know to their fused ranking. Without the
// question's vector only the time it names counts.
func (e *Engine) rank(ctx context.Context, p plan, fused, words []Hit, vector []float32) (ranked, error) {
	if vector != nil && (p.query.Ranking == "" || p.query.Ranking == Fused) {
		return e.compare(ctx, p, fused, words, vector)
	}
	ranking, err := e.prefer(ctx, p, fused)
	return ranked{hits: ranking}, err
}

// score returns the cosines of hits that only the lexical search found.
func (e *Engine) score(ctx context.Context, p plan, words lexical, d dense) ([]Hit, error) {
	unscored := scores(words.hits)
	for _, h := range d.hits {
		delete(unscored, h.ID)
	}
	wanted := NewUnitSet(slices.Collect(maps.Keys(unscored)))
	var hits []Hit
	for _, h := range d.beyondLimit {
		if wanted.Has(h.ID) {
			hits = append(hits, h)
			wanted.Remove(h.ID)
			delete(unscored, h.ID)
		}
	}
	if len(unscored) == 0 {
		return hits, nil
	}
	scored, err := e.Searcher.Score(ctx, p.scope, p.request.Generation, slices.Sorted(maps.Keys(unscored)), d.vector)
	if err != nil {
		return nil, fmt.Errorf("score lexical hits: %w", err)
	}
	return append(hits, scored...), nil
}

// resolve returns the first query.Limit live units of the ranking, in order, with only the
// best of each message or memory. The ranking begins with the units that are known
// to be live.
func (e *Engine) resolve(ctx context.Context, p plan, ranking []Hit, live map[UnitID]Found) ([]Found, error) {
	ctx, end := trace.Begin(ctx, trace.Hydrate)
	defer end()
	wanted := p.query.Limit
	seen := make(map[position]bool, wanted)
	found := make([]Found, 0, wanted)
	batch := ranking[:min(len(live), len(ranking))]
	for {
		for _, h := range batch {
			f, ok := live[h.ID]
			at := position{f.Owner, f.Seq}
			if !ok || seen[at] || len(found) == wanted {
				continue
			}
			seen[at] = true
			f.Score = h.Score
			found = append(found, f)
		}
		ranking = ranking[len(batch):]
		if len(ranking) == 0 || len(found) == wanted {
			return found, nil
		}
		batch = ranking[:min(len(ranking), p.request.Limit)]
		var err error
		if live, err = e.live(ctx, p, batch); err != nil {
			return nil, err
		}
	}
}

// live returns the hits that are live in the scope and match the query's filters.
func (e *Engine) live(ctx context.Context, p plan, hits []Hit) (map[UnitID]Found, error) {
	list, err := e.Searcher.Resolve(ctx, p.scope, p.request, unitIDs(hits))
	if err != nil {
		return nil, fmt.Errorf("resolve units: %w", err)
	}
	out := make(map[UnitID]Found, len(list))
	for _, f := range list {
		out[f.ID] = f
	}
	return out, nil
}

func unitIDs(hits []Hit) []UnitID {
	out := make([]UnitID, len(hits))
	for i, h := range hits {
		out[i] = h.ID
	}
	return out
}
