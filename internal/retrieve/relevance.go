package retrieve

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Features of a relevance, in the order of the weights in relevance.json.
const (
	relBest    = iota // margin of the best candidate
	relNoise          // margin that unrelated questions have among the candidates
	relCovered        // share of the question's terms in one of the first candidates, weighed by rarity
	relAll            // 1 if it contains all of them
	relevanceCount
)

// references are the texts from which a model's background is measured.
type references struct {
	Pairs     [][2]string // a text and a question that it answers
	Texts     []string
	Unrelated []string // questions
}

// relevanceModel maps a question and its candidates to the probability that they are
// relevant.
type relevanceModel struct {
	Weights    []float64
	Bias       float64
	Slope      float64 // by which the logit falls with the ranking's
	Threshold  float64
	References references
}

// Learned by a logistic regression on the tune sets. hack/ranking/relevance.py learns other weights from a
// similar selection of questions, which reject less: see docs/retrieval.md.
//
//go:embed relevance.json
var relevanceFile []byte

var learnedRelevance = mustParseRelevance(relevanceFile)

// DefaultMinScore is the calibrated score below which results are not relevant.
var DefaultMinScore = learnedRelevance.Threshold

// CheckMinScore adds an error if a minimum score is not 0 to 1.
func CheckMinScore(f *fault.Fields, minScore *float64) {
	if minScore != nil && !(*minScore >= 0 && *minScore <= 1) {
		f.Add("minimum score", "must be 0 to 1, not %v", *minScore)
	}
}

func mustParseRelevance(raw []byte) (m relevanceModel) {
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Weights) != relevanceCount {
		panic(fmt.Sprintf("relevance.json has %d weights instead of %d: %v", len(m.Weights), relevanceCount, err))
	}
	return m
}

// logit returns the logarithm of the odds that the candidates are relevant.
func (m relevanceModel) logit(f [relevanceCount]float64) float64 {
	sum := m.Bias
	for i, w := range m.Weights {
		sum += w * f[i]
	}
	return sum
}

// firstCandidates is the number of candidates that are searched for the terms of the question.
const firstCandidates = 3

// judge replaces the scores of a ranking by the probability that each is relevant. It
// keeps the order.
func (c *comparison) judge(b *background, ranking []Hit) {
	units := make(map[UnitID]Described, len(c.all))
	var vectors [][]float32
	for _, d := range c.all {
		if !d.neighbor() {
			units[d.ID] = d
			vectors = append(vectors, d.Vector)
		}
	}
	coverage := c.coverage(units, ranking)
	noise := c.noise(b, vectors)
	margin := func(h Hit) float64 {
		return b.margin(c.query.Kind, c.vector, dot(units[h.ID].Vector, c.vector))
	}
	if c.query.Kind == Chat {
		c.judgeTogether(ranking, noise, margin, coverage)
	} else {
		judgeEach(ranking, c.noiseWithoutFragments(b, units, noise), margin, coverage)
	}
	for i, h := range ranking {
		d, w := units[h.ID], c.query.Window
		// The question may be about nothing but the time, and a unit without a vector
		// cannot be judged.
		if !w.IsZero() && !d.At.IsZero() && w.Contains(d.At) || len(d.Vector) == 0 && coverage[i] > 0 {
			ranking[i].Score = max(h.Score, DefaultMinScore)
		}
	}
	slices.SortStableFunc(ranking, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// judgeTogether judges the best messages, whose neighbors count too. The others are
// less probable as they rank lower.
func (c *comparison) judgeTogether(ranking []Hit, noise float64, margin func(Hit) float64, coverage []float64) {
	f := [relevanceCount]float64{relBest: math.Inf(-1), relNoise: noise}
	for i, h := range ranking {
		f[relBest] = max(f[relBest], margin(h))
		if i < firstCandidates {
			f[relCovered] = max(f[relCovered], coverage[i])
		}
	}
	f[relAll] = number(f[relCovered] == 1)
	if len(ranking) == 0 {
		return
	}
	first, most := learnedRelevance.logit(f), logit(ranking[0].Score)
	for i, h := range ranking {
		ranking[i].Score = logistic(first + learnedRelevance.Slope*(logit(h.Score)-most))
	}
}

// judgeEach judges every memory alone. One that ranks above another is at least as
// relevant.
func judgeEach(ranking []Hit, noise, margin func(Hit) float64, coverage []float64) {
	best := 0.0
	for i, h := range slices.Backward(ranking) {
		f := [relevanceCount]float64{relBest: margin(h), relNoise: noise(h), relCovered: coverage[i], relAll: number(coverage[i] == 1)}
		best = max(best, logistic(learnedRelevance.logit(f)))
		ranking[i].Score = best
	}
}

// noiseGrowth is by how much the noise grows when the number of memories doubles (docs/retrieval.md).
const noiseGrowth = 0.045

// noise returns the noise that is typical of all memories that were found, of which some may not be compared.
func (c *comparison) noise(b *background, texts [][]float32) float64 {
	noise := b.noise(c.query.Kind, texts)
	if c.query.Kind == Memory {
		noise -= noiseGrowth * math.Log2(cmp.Or(c.share, 1))
	}
	return noise
}

// noiseWithoutFragments returns the noise for each memory: that of all memories for a
// fragment, and that of the others for the others.
func (c *comparison) noiseWithoutFragments(b *background, units map[UnitID]Described, noise float64) func(Hit) float64 {
	var others [][]float32
	for _, d := range units {
		if !isFragment(d.Text) {
			others = append(others, d.Vector)
		}
	}
	quiet := noise
	if len(others) > 0 && len(others) < len(units) {
		quiet = c.noise(b, others)
	}
	return func(h Hit) float64 {
		if isFragment(units[h.ID].Text) {
			return noise
		}
		return quiet
	}
}

// longestFragment is the number of bytes of the longest fragment.
const longestFragment = 16

// isFragment reports whether a memory is a single short word, such as "test". It is similar
// to many questions and answers none, so it must not make other memories less relevant.
func isFragment(text string) bool {
	if len(text) > len("2006-01-02 ")+longestFragment {
		return false
	}
	text = leadingDate.ReplaceAllString(strings.TrimSpace(text), "")
	return len(text) <= longestFragment && !strings.ContainsAny(text, " \t\n")
}

// coverage returns the share of the question's terms that each candidate contains, weighed by
// their rarity among the candidates. Its heading counts if the question has several terms: many questions contain
// a single word such as "work" that is also the name of a bucket.
func (c *comparison) coverage(units map[UnitID]Described, ranking []Hit) []float64 {
	asked := slices.Compact(slices.Sorted(slices.Values(terms(c.query.Text))))
	wanted := make(map[string]bool, len(asked))
	for _, t := range asked {
		wanted[t] = true
	}
	found, bags := map[string]int{}, make([]bag, len(ranking))
	for i, h := range ranking {
		d := units[h.ID]
		words := plainWords(d.Text)
		if len(asked) > 1 {
			words = d.headed(words)
		}
		bags[i] = bagOf(words, wanted)
		for t := range bags[i].counts {
			found[t]++
		}
	}
	out := make([]float64, len(ranking))
	weights, total := make([]float64, len(asked)), 0.0
	for i, t := range asked {
		weights[i] = rarity(float64(len(ranking)), float64(found[t]))
		total += weights[i]
	}
	for i := range out {
		missing := 0.0
		for j, t := range asked {
			if bags[i].counts[t] == 0 {
				missing += weights[j]
			}
		}
		if total > 0 {
			out[i] = 1 - missing/total
		}
	}
	return out
}
