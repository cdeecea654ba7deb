package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/trace"
)

// The number of fused candidates that are compared in detail: a multiple of the limit. Fewer memories are compared,
// because they keep the order of the fusion.
const (
	rerankFactor       = 5
	memoryRerankFactor = 2
	minRerankDepth     = 100
	maxRerankDepth     = 200
)

// rerankDepth returns the number of candidates to compare.
func (q Query) rerankDepth() int {
	factor := rerankFactor
	if q.Kind == Memory {
		factor = memoryRerankFactor
	}
	return min(max(factor*q.Limit, minRerankDepth), maxRerankDepth)
}

func (d Described) neighbor() bool { return d.Text == "" }

// comparable reports whether the unit can be compared with the question: by its vector or, without one, because the lexical search found
// it. The index returns a unit a moment before its vector is saved, and longer if that fails.
func (d Described) comparable(lexical map[UnitID]float64) bool {
	_, found := lexical[d.ID]
	return d.neighbor() || found || len(d.Vector) > 0
}

// headed returns the words of the heading and those of the text.
func (d Described) headed(words []string) []string {
	if d.Heading == "" {
		return words
	}
	return append(plainWords(d.Heading), words...)
}

func (d Described) found() Found {
	return Found{ID: d.ID, Owner: d.Owner, Seq: d.Seq, Start: d.Start, End: d.End, At: d.At, Superseded: d.Superseded}
}

// compare sorts the best chat units of a fused ranking by the learned weights, judges
// the relevance of the best units, and returns those that are live. The others follow
// in their order, with lower scores.
func (e *Engine) compare(ctx context.Context, p plan, ranking, words []Hit, vector []float32) (ranked, error) {
	q := p.query
	head := ranking[:min(len(ranking), q.rerankDepth())]
	described, err := e.describe(ctx, p, head)
	lexical := scores(words)
	if q.Kind == Chat {
		described = slices.DeleteFunc(described, func(d Described) bool { return !d.comparable(lexical) })
	}
	if err != nil || len(described) == 0 {
		return ranked{hits: ranking}, err
	}
	c := comparison{query: q, lexical: lexical, vector: vector, all: described,
		share: float64(len(head)) / float64(min(len(ranking), maxRerankDepth))}
	var out []Hit
	if q.Kind == Chat {
		e.takePerspective(ctx, &c)
		out = c.bothSides(c.newerFirst(c.bestConversationFirst(c.rank())))
	} else {
		out = c.confirmed(head)
	}
	background := e.background(ctx, q.Generation)
	if background != nil {
		c.judge(background, out)
	}
	if q.Kind == Memory {
		out = c.preferNamed(out)
	}
	worst := 1.0
	for _, h := range out {
		worst = min(worst, h.Score)
	}
	live, texts := make(map[UnitID]Found, len(out)), make(map[UnitID]string, len(out))
	for _, d := range described {
		if !d.neighbor() {
			live[d.ID], texts[d.ID] = d.found(), d.Text
		}
	}
	for _, h := range ranking {
		if _, ok := live[h.ID]; !ok {
			out = append(out, Hit{ID: h.ID, Score: worst * h.Score})
		}
	}
	return ranked{hits: out, live: live, texts: texts, calibrated: background != nil}, nil
}

// confirmed returns the hits of a ranking that were described.
func (c *comparison) confirmed(ranking []Hit) []Hit {
	known := make(map[UnitID]bool, len(c.all))
	for _, d := range c.all {
		known[d.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(ranking), func(h Hit) bool { return !known[h.ID] })
}

func (e *Engine) describe(ctx context.Context, p plan, hits []Hit) ([]Described, error) {
	ctx, end := trace.Begin(ctx, trace.Hydrate)
	defer end()
	described, err := e.Searcher.Describe(ctx, p.scope, p.request, unitIDs(hits))
	if err != nil {
		return nil, fmt.Errorf("describe units: %w", err)
	}
	return described, nil
}

// comparison compares the candidates for one question.
type comparison struct {
	query   Query
	lexical map[UnitID]float64
	vector  []float32   // of the question
	all     []Described // candidates and neighbors
	share   float64     // of those found, up to maxRerankDepth, which are compared; 0 for all
	names   map[string]bool
	speaker map[UnitID]string
}

// candidate is a unit with its cosine with the question.
type candidate struct {
	Described
	cosine float64
}

// position is the place of a message: its conversation and number, or a memory with the number 0.
type position struct {
	owner string
	seq   int
}

// rank returns the candidates, best first, with the logistic function of their sum of
// weighted features.
func (c *comparison) rank() []Hit {
	candidates, list := c.compared()
	out := make([]Hit, len(list))
	for i, f := range list {
		out[i] = Hit{ID: candidates[i].ID, Score: logistic(f.score(learned.second))}
	}
	slices.SortFunc(out, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID)) })
	return out
}

// compared returns the candidates, by id, and their features.
func (c *comparison) compared() ([]candidate, []features) {
	cosines, unknown := c.cosines()
	candidates, best := make([]candidate, 0, len(c.all)), make(map[position]float64, len(c.all))
	for i, d := range c.all {
		cosine := unknown
		if len(d.Vector) > 0 {
			cosine = cosines[i]
			at := position{d.Owner, d.Seq}
			if most, ok := best[at]; !ok || cosine > most {
				best[at] = cosine
			}
		}
		if !d.neighbor() {
			candidates = append(candidates, candidate{d, cosine})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.ID, b.ID) })
	list := c.features(candidates, best)
	addCentred(candidates, list, c.vector)
	addNear(candidates, list)
	return candidates, list
}

// cosines returns the cosine of each unit that has a vector, and the one assumed for a
// candidate without a vector: that of the best one, so that its words decide where it
// ranks. It was stored a moment ago, or while the embedder was unavailable, and must be
// found by its words as without any vectors.
func (c *comparison) cosines() (list []float64, unknown float64) {
	list, unknown = make([]float64, len(c.all)), -1
	for i, d := range c.all {
		list[i] = Dot(d.Vector, c.vector)
		if !d.neighbor() && len(d.Vector) > 0 {
			unknown = max(unknown, list[i])
		}
	}
	return list, unknown
}

// features compares the candidates with the question. best is the best cosine of each
// message.
func (c *comparison) features(candidates []candidate, best map[position]float64) []features {
	list, texts, words := make([]features, len(candidates)), make([]bag, len(candidates)), make([][]string, len(candidates))
	median := medianCosine(candidates)
	asked := c.terms()
	wanted := make(map[string]bool, len(asked))
	for _, t := range asked {
		wanted[t] = true
	}
	for i, d := range candidates {
		words[i] = plainWords(d.Text)
		texts[i] = bagOf(d.headed(words[i]), wanted)
		list[i][featMeaning] = d.cosine
		list[i][featBefore], list[i][featAfter] = median, median
		if v, ok := best[position{d.Owner, d.Seq - 1}]; ok {
			list[i][featBefore] = v
		}
		if v, ok := best[position{d.Owner, d.Seq + 1}]; ok {
			list[i][featAfter] = v
		}
		list[i][featLexical] = c.lexical[d.ID]
	}
	for i, s := range bm25(asked, texts) {
		list[i][featWords] = s
	}
	for _, f := range []int{featMeaning, featBefore, featAfter, featLexical, featWords} {
		standardize(list, f)
	}
	c.addSigns(candidates, words, list)
	return list
}

// terms returns the distinct terms of the question without the names of speakers, which are
// compared apart.
func (c *comparison) terms() []string {
	names := map[string]bool{}
	for name := range c.names {
		names[stem(name)] = true
	}
	return slices.DeleteFunc(terms(c.query.Text), func(t string) bool {
		skip := names[t]
		names[t] = true
		return skip
	})
}

func medianCosine(candidates []candidate) float64 {
	cosines := make([]float64, len(candidates))
	for i, d := range candidates {
		cosines[i] = d.cosine
	}
	return median(cosines)
}
