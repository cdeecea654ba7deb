package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
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

// Config holds the dependencies of an Engine. Searcher, Index and Embedders are required.
type Config struct {
	Searcher  Searcher
	Index     Index
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
	reranker    breaker
	mu          sync.Mutex
	embedders   map[placement.GenerationID]*breaker
	indexes     map[string]*breaker // by collection
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
	return &Engine{Config: c, embedders: map[placement.GenerationID]*breaker{}, indexes: map[string]*breaker{},
		backgrounds: backgrounds{known: map[placement.GenerationID]*background{}, retry: map[placement.GenerationID]time.Time{}}}
}

// Search returns the q.Limit best units in the scope, best first, with at most one
// unit per message or memory. PostgreSQL confirmed that each is live and in the
// scope. If the index or the embedder is unavailable, the result is Degraded; only
// PostgreSQL causes an error.
func (e *Engine) Search(ctx context.Context, scope tenant.Scope, p placement.Location, q Query) (Result, error) {
	wanted := max(q.Limit, 1)
	q.Limit = max(wanted, min(overfetch*wanted, maxOverfetch), minCandidates)
	// When one side fails, the other is cancelled.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q, err := e.restrict(ctx, scope, q)
	if err != nil || q.matchesNothing() {
		return Result{}, err
	}

	var words []Hit
	var truncated bool
	var wordsErr error
	var wait sync.WaitGroup
	wait.Go(func() {
		if words, truncated, wordsErr = e.words(ctx, scope, q); wordsErr != nil {
			cancel()
		}
	})
	d, denseErr := e.dense(ctx, scope, p, q)
	if denseErr != nil {
		cancel()
	}
	wait.Wait()
	switch {
	case wordsErr != nil && (denseErr == nil || errors.Is(denseErr, context.Canceled)):
		return Result{}, fmt.Errorf("search by words: %w", wordsErr)
	case denseErr != nil:
		return Result{}, denseErr
	}
	if d.vector != nil {
		more, err := e.score(ctx, scope, q.Generation, words, d)
		if err != nil {
			return Result{}, err
		}
		d.hits = append(d.hits, more...)
	}
	fused, err := e.matching(ctx, scope, q, Fuse(words, d.hits, truncated))
	if err != nil {
		return Result{}, err
	}
	r, err := e.rank(ctx, scope, q, wanted, fused, words, d.vector)
	if err != nil {
		return Result{}, err
	}
	found, err := e.resolve(ctx, scope, q, r.above(q.MinScore), r.live, wanted)
	if err != nil {
		return Result{}, err
	}
	e.rerank(ctx, q, found, r.texts)
	return Result{Found: found, Calibrated: r.calibrated, Degraded: d.degraded}, nil
}

// ranked is a ranking, best first.
type ranked struct {
	hits  []Hit
	live  map[UnitID]Found  // the first hits, if PostgreSQL already confirmed that they are live
	texts map[UnitID]string // of the live ones
	// calibrated reports that scores are probabilities of being relevant.
	calibrated bool
}

// above returns the hits with at least the score. The default is DefaultMinScore if the
// scores are calibrated, and else 0.
func (r ranked) above(minScore *float64) []Hit {
	least := 0.0
	switch {
	case minScore != nil:
		least = *minScore
	case r.calibrated:
		least = DefaultMinScore
	}
	i := slices.IndexFunc(r.hits, func(h Hit) bool { return h.Score < least })
	if i < 0 {
		return r.hits
	}
	return r.hits[:i]
}

// rank applies what the searches do not know to their fused ranking. Without the
// question's vector only the time it names counts.
func (e *Engine) rank(
	ctx context.Context, scope tenant.Scope, q Query, wanted int, fused, words []Hit, vector []float32,
) (ranked, error) {
	if vector != nil && (q.Ranking == "" || q.Ranking == Fused) {
		return e.compare(ctx, scope, q, wanted, fused, words, vector)
	}
	ranking, err := e.prefer(ctx, scope, q, fused)
	return ranked{hits: ranking}, err
}

// dense is the result of the search by meaning.
type dense struct {
	vector   []float32 // of the query; nil if the embedder was unavailable
	hits     []Hit
	rest     []Hit // less similar units that were scored anyway
	degraded bool
}

// dense embeds the query and searches the database and the index in parallel.
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
	if q.Owners != nil {
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
	if !q.Few {
		wait.Go(search)
	}
	exact, rest, coverage, err := e.exact(ctx, scope, q, vector)
	switch {
	case err != nil || coverage.All:
		cancel() // the index's result is not needed
	case q.Few: // the user has more units now
		search()
	}
	wait.Wait()
	if err != nil {
		return dense{}, fmt.Errorf("search recent units: %w", err)
	}
	d := dense{vector: vector, hits: exact, rest: rest, degraded: coverage.Truncated || coverage.Missing}
	if coverage.All {
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

// exact searches the database, without restriction and again within the query's window. rest are
// the hits of the former beyond the limit.
func (e *Engine) exact(ctx context.Context, scope tenant.Scope, q Query, vector []float32) (hits, rest []Hit, coverage Coverage, err error) {
	ctx, end := trace.Begin(ctx, trace.Exact)
	defer end()
	hits, coverage, err = e.Searcher.Exact(ctx, scope, q, vector)
	if err != nil {
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
	if !b.allow(e.Now()) {
		return nil
	}
	staged, end := trace.Begin(ctx, trace.Embed)
	defer end()
	limited, cancel := context.WithTimeout(staged, e.EmbedTimeout)
	defer cancel()
	vector, err := e.Embedders.EmbedQuery(limited, g, text)
	e.note(ctx, b, err, "embedder")
	if err != nil {
		return nil
	}
	return vector
}

// index searches the index; answered is false if it is unavailable, the tenant has no
// placement, or the filter is resolved.
func (e *Engine) index(ctx context.Context, scope tenant.Scope, p placement.Location, q Query, vector []float32) (hits []Hit, answered bool) {
	if p == (placement.Location{}) || q.Owners != nil && !q.broad {
		return nil, false
	}
	b := breakerOf(e, e.indexes, p.Collection)
	if !b.allow(e.Now()) {
		return nil, false
	}
	staged, end := trace.Begin(ctx, trace.Dense)
	hits, err := e.Index.Search(staged, scope, p, q, vector)
	end()
	switch {
	case err == nil || fault.Is(err, fault.Unavailable) && !errors.Is(err, ErrNoPartition):
		e.note(ctx, b, err, "vector store")
	default:
		// The failure concerns one tenant and was immediate: the breaker stays closed.
		b.unknown(e.Now())
		e.Log.WarnContext(ctx, "search without the vector index", "tenant", scope.Tenant, "error", err)
	}
	return hits, err == nil
}

// note records the outcome of a call and logs changes of availability.
func (e *Engine) note(ctx context.Context, b *breaker, err error, what string) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		b.unknown(e.Now())
	case !b.done(e.Now(), err == nil):
	case err == nil:
		e.Log.InfoContext(ctx, "dependency available", "dependency", what)
	default:
		e.Log.WarnContext(ctx, "dependency unavailable; search is degraded", "dependency", what, "error", err)
	}
}

// breakerOf returns the breaker of a dependency, which it creates at its first use.
func breakerOf[K comparable](e *Engine, of map[K]*breaker, dependency K) *breaker {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := of[dependency]
	if b == nil {
		b = &breaker{}
		of[dependency] = b
	}
	return b
}

// score returns the cosines of hits that only the lexical search found.
func (e *Engine) score(ctx context.Context, scope tenant.Scope, g placement.GenerationID, words []Hit, d dense) ([]Hit, error) {
	have, rest := scores(d.hits), scores(d.rest)
	var hits []Hit
	var ids []UnitID
	for _, h := range words {
		if _, ok := have[h.ID]; ok {
			continue
		}
		if cosine, ok := rest[h.ID]; ok {
			hits = append(hits, Hit{ID: h.ID, Score: cosine})
		} else {
			ids = append(ids, h.ID)
		}
	}
	if len(ids) == 0 {
		return hits, nil
	}
	more, err := e.Searcher.Score(ctx, scope, g, ids, d.vector)
	if err != nil {
		return nil, fmt.Errorf("score lexical hits: %w", err)
	}
	return append(hits, more...), nil
}

// resolve returns the first wanted live units of the ranking, in order, with only the
// best of each message or memory. The ranking begins with the units that are known
// to be live.
func (e *Engine) resolve(ctx context.Context, scope tenant.Scope, q Query, ranking []Hit, live map[UnitID]Found, wanted int) ([]Found, error) {
	ctx, end := trace.Begin(ctx, trace.Hydrate)
	defer end()
	type position struct {
		owner string
		seq   int
	}
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
		batch = ranking[:min(len(ranking), q.Limit)]
		var err error
		if live, err = e.live(ctx, scope, q, batch); err != nil {
			return nil, err
		}
	}
}

// live returns the hits that are live in the scope and match the query's filters.
func (e *Engine) live(ctx context.Context, scope tenant.Scope, q Query, hits []Hit) (map[UnitID]Found, error) {
	list, err := e.Searcher.Resolve(ctx, scope, q, unitIDs(hits))
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
