package retrieve

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// rerankDepth is the number of fused candidates that are compared in detail.
const rerankDepth = 200

// Described is a chat unit as the ranking compares it. Neighbours, from the messages
// before and after a candidate, have only their position and Vector.
type Described struct {
	ID     UnitID
	Owner  string
	Seq    int
	Human  bool // written by the user
	At     time.Time
	Text   string // the piece; empty for a neighbour
	Vector []float32
}

// Learned weights, from hack/ranking. See docs/retrieval.md.
//
//go:embed weights.json
var weightsFile []byte

var learned = mustParseWeights(weightsFile)

func mustParseWeights(raw []byte) (w features) {
	var file struct{ Weights []float64 }
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Weights) != int(featureCount) {
		panic(fmt.Sprintf("weights.json has %d weights instead of %d: %v", len(file.Weights), featureCount, err))
	}
	copy(w[:], file.Weights)
	return w
}

// rerank sorts the best chat units of a fused ranking by the learned weights. The
// others follow in their order, with lower scores.
func (e *Engine) rerank(ctx context.Context, scope tenant.Scope, q Query, ranking, words []Hit, vector []float32) ([]Hit, error) {
	head := ranking[:min(len(ranking), rerankDepth)]
	ids := make([]UnitID, len(head))
	for i, h := range head {
		ids[i] = h.ID
	}
	described, err := e.describe(ctx, scope, ids)
	if err != nil || len(described) == 0 {
		return ranking, err
	}
	c := comparison{query: q, lexical: scores(words), vector: vector, all: described}
	c.speakers()
	if len(c.names) > 0 {
		if v := e.embed(ctx, perspective(q.Text, c.names)); v != nil {
			c.vector = v
		}
	}
	out := c.rank()
	ranked := make(map[UnitID]bool, len(out))
	worst := 1.0
	for _, h := range out {
		ranked[h.ID] = true
		worst = min(worst, h.Score)
	}
	for _, h := range ranking {
		if !ranked[h.ID] {
			out = append(out, Hit{ID: h.ID, Score: worst * h.Score})
		}
	}
	return out, nil
}

func (e *Engine) describe(ctx context.Context, scope tenant.Scope, ids []UnitID) ([]Described, error) {
	ctx, end := trace.Begin(ctx, trace.Hydrate)
	defer end()
	described, err := e.Searcher.Describe(ctx, scope, ids)
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
	all     []Described // candidates and neighbours
	names   map[string]bool
	speaker map[UnitID]string
}

// speakers finds the speakers of the candidates and those that the question names.
func (c *comparison) speakers() {
	c.speaker = map[UnitID]string{}
	every := map[string]bool{}
	for _, d := range c.all {
		if s := speaker(d.Text); s != "" {
			c.speaker[d.ID], every[s] = s, true
		}
	}
	c.names = named(c.query.Text, every)
}

// place is the position of a message.
type place struct {
	owner string
	seq   int
}

// rank returns the candidates, best first, with the logistic function of their sum of
// weighted features.
func (c *comparison) rank() []Hit {
	var candidates []Described
	best := map[place]float64{}
	for _, d := range c.all {
		at := place{d.Owner, d.Seq}
		if cosine, ok := best[at]; !ok || c.cosine(d) > cosine {
			best[at] = c.cosine(d)
		}
		if d.Text != "" {
			candidates = append(candidates, d)
		}
	}
	slices.SortFunc(candidates, func(a, b Described) int { return cmp.Compare(a.ID, b.ID) })
	list := c.features(candidates, best)
	out := make([]Hit, len(list))
	for i, f := range list {
		out[i] = Hit{ID: candidates[i].ID, Score: logistic(f.score(learned))}
	}
	slices.SortFunc(out, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID)) })
	return out
}

func (c *comparison) cosine(d Described) (sum float64) {
	for i, v := range d.Vector[:min(len(d.Vector), len(c.vector))] {
		sum += float64(v) * float64(c.vector[i])
	}
	return sum
}

// features compares the candidates with the question. best is the best cosine of each
// message.
func (c *comparison) features(candidates []Described, best map[place]float64) []features {
	list, texts, words := make([]features, len(candidates)), make([]bag, len(candidates)), make([][]string, len(candidates))
	median := medianCosine(c, candidates)
	asked := c.terms()
	wanted := make(map[string]bool, len(asked))
	for _, t := range asked {
		wanted[t] = true
	}
	for i, d := range candidates {
		words[i] = plainWords(d.Text)
		texts[i] = bagOf(words[i], wanted)
		list[i][featMeaning] = c.cosine(d)
		list[i][featBefore], list[i][featAfter] = median, median
		if v, ok := best[place{d.Owner, d.Seq - 1}]; ok {
			list[i][featBefore] = v
		}
		if v, ok := best[place{d.Owner, d.Seq + 1}]; ok {
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

func medianCosine(c *comparison, candidates []Described) float64 {
	cosines := make([]float64, len(candidates))
	for i, d := range candidates {
		cosines[i] = c.cosine(d)
	}
	slices.Sort(cosines)
	if len(cosines) == 0 {
		return 0
	}
	return cosines[len(cosines)/2]
}
