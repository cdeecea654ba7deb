package retrieve

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	Weights []float64
	Bias    float64
	// Fall is by how much the logarithm of the probability of a message falls with its distance from the best one: in
	// the logit of the ranking, in the margin, and in the share of the question's terms.
	Fall struct {
		Ranking, Margin, Covered float64
	}
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

// MaxQuery is the largest size of the text of a query, bytes. Embedding models read the first few hundred words.
const MaxQuery = 8 << 10

// CheckQuery adds an error if the text of a query is larger than MaxQuery.
func CheckQuery(f *fault.Fields, field, query string) {
	if len(query) > MaxQuery {
		f.Add(field, "must be at most %d bytes of UTF-8, not %d", MaxQuery, len(query))
	}
}

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
	noise := c.noiseFor(b, units, c.noise(b, vectors))
	margin := func(h Hit) float64 {
		return b.margin(c.query.Kind, c.vector, Dot(units[h.ID].Vector, c.vector))
	}
	if c.query.Kind == Chat {
		judgeTogether(ranking, units, noise, margin, coverage)
	} else {
		judgeEach(ranking, noise, margin, coverage)
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

// judgeTogether judges how probable it is that the question has an answer. The probability of each message falls with its distance from
// the best one, in which the messages around it count, too. One that ranks above another is at least as relevant.
func judgeTogether(ranking []Hit, units map[UnitID]Described, noise, margin func(Hit) float64, coverage []float64) {
	if len(ranking) == 0 {
		return
	}
	f := [relevanceCount]float64{relCovered: slices.Max(coverage[:min(firstCandidates, len(coverage))])}
	f[relAll] = number(f[relCovered] == 1)
	first := math.Inf(-1)
	for _, h := range ranking {
		f[relBest], f[relNoise] = margin(h), noise(h)
		first = max(first, learnedRelevance.logit(f))
	}
	type place struct {
		conversation string
		seq          int
	}
	fall := learnedRelevance.Fall
	margins, covered := map[place]float64{}, map[place]float64{}
	for i, h := range ranking {
		for distance := -Neighbors; distance <= Neighbors; distance++ {
			at := place{units[h.ID].Owner, units[h.ID].Seq + distance}
			m, known := margins[at]
			if margins[at] = margin(h); known {
				margins[at] = max(m, margin(h))
			}
			covered[at] = max(covered[at], coverage[i])
		}
	}
	sums := make([]float64, len(ranking))
	for i, h := range ranking {
		at := place{units[h.ID].Owner, units[h.ID].Seq}
		sums[i] = fall.Ranking*math.Log(oddsOf(h.Score)) + fall.Margin*margins[at] + fall.Covered*covered[at]
	}
	most, best := slices.Max(sums), math.Inf(-1)
	for i, sum := range slices.Backward(sums) {
		best = max(best, sum)
		ranking[i].Score = logistic(first) * math.Exp(best-most)
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

// noiseFor returns the noise for each text, given that of all: this one for a text that isNoisy, and that of the others for the others.
func (c *comparison) noiseFor(b *background, units map[UnitID]Described, noise float64) func(Hit) float64 {
	noisy := make(map[UnitID]bool, len(units))
	var others [][]float32
	for id, d := range units {
		if noisy[id] = c.isNoisy(d.Text); !noisy[id] {
			others = append(others, d.Vector)
		}
	}
	quiet := noise
	if len(others) > 0 && len(others) < len(units) {
		quiet = c.noise(b, others)
	}
	return func(h Hit) float64 {
		if noisy[h.ID] {
			return noise
		}
		return quiet
	}
}

// isNoisy reports whether a text is as similar to the unrelated questions, which are English, as to any other: a fragment among memories, and
// a text of another script. It must not make other texts less relevant.
func (c *comparison) isNoisy(text string) bool {
	return c.query.Kind == Memory && isFragment(text) || isLatin(c.query.Text) && !isLatin(text)
}

// isLatin reports whether most letters of a text are Latin.
func isLatin(text string) bool {
	latin, others := 0, 0
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z') || unicode.Is(unicode.Latin, r):
			latin++
		case unicode.IsLetter(r):
			others++
		}
	}
	return latin > others
}

// longestFragment is the number of bytes of the longest fragment.
const longestFragment = 16

// isFragment reports whether a memory is a single short word, such as "test". It is similar
// to many questions and answers none.
func isFragment(text string) bool {
	if len(text) > len("2006-01-02 ")+longestFragment {
		return false
	}
	text = leadingDate.ReplaceAllString(strings.TrimSpace(text), "")
	return len(text) <= longestFragment && !strings.ContainsAny(text, " \t\n")
}

// isSingleWord reports whether a text is one word, possibly with punctuation around it, even after a space, as in French.
func isSingleWord(text string) bool {
	parts := strings.Fields(text)
	return len(slices.DeleteFunc(parts, func(part string) bool { return !strings.ContainsFunc(part, isWordRune) })) == 1
}

// coverage returns the share of the question's terms that each candidate contains, weighed by
// their rarity among the candidates. Its heading counts if the question has several terms or, for a title, is a single word: many questions have
// a single term such as "work" that is also the name of a bucket.
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
		if len(asked) > 1 || c.query.Kind == Chat && isSingleWord(c.query.Text) {
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
