package retrievalbench

import (
	"cmp"
	"slices"
	"time"
)

// passage is a search result.
type passage struct {
	id, conversation string
	tokens           int
	score            float64
}

// answer is the result for one question.
type answer struct {
	question
	passages []passage
	took     time.Duration
	sessions map[string]string // the conversation of each source
}

var (
	depths  = []int{5, 10, 25, 40}
	budgets = []int{500, 1000, 2000}
)

// recall returns the share of the sources in the first n passages.
func (a answer) recall(n int) float64 { return share(a.sources, a.ids(n)) }

func (a answer) ids(n int) []string {
	var out []string
	for _, p := range a.passages[:min(n, len(a.passages))] {
		out = append(out, p.id)
	}
	return out
}

// within returns the share of the sources in the first passages of at most budget
// tokens in total.
func (a answer) within(budget int) float64 {
	n := 0
	for n < len(a.passages) && budget >= a.passages[n].tokens {
		budget -= a.passages[n].tokens
		n++
	}
	return a.recall(n)
}

func (a answer) tokens(n int) (sum int) {
	for _, p := range a.passages[:min(n, len(a.passages))] {
		sum += p.tokens
	}
	return sum
}

// sessionRecall returns the share of the sources' conversations among the first n
// conversations found.
func (a answer) sessionRecall(n int) float64 {
	var wanted, found []string
	for _, s := range a.sources {
		if c := a.sessions[s]; !slices.Contains(wanted, c) {
			wanted = append(wanted, c)
		}
	}
	for _, p := range a.passages {
		if len(found) < n && !slices.Contains(found, p.conversation) {
			found = append(found, p.conversation)
		}
	}
	return share(wanted, found)
}

// sessionHit reports whether the first passage is from the conversation of a source.
func (a answer) sessionHit() bool {
	if len(a.passages) == 0 {
		return false
	}
	return slices.ContainsFunc(a.sources, func(s string) bool { return a.sessions[s] == a.passages[0].conversation })
}

// rank returns the first position of any of the ids, or one past the end.
func (a answer) rank(ids []string) int {
	i := slices.IndexFunc(a.passages, func(p passage) bool { return slices.Contains(ids, p.id) })
	if i < 0 {
		return len(a.passages)
	}
	return i
}

// best returns the highest score.
func (a answer) best() (score float64) {
	for _, p := range a.passages {
		score = max(score, p.score)
	}
	return score
}

func share(wanted, found []string) float64 {
	n := 0
	for _, w := range wanted {
		if slices.Contains(found, w) {
			n++
		}
	}
	return float64(n) / float64(max(len(wanted), 1))
}

// auc returns the probability that a score of the first list exceeds one of the second.
func auc(high, low []float64) float64 {
	sum := 0.0
	for _, h := range high {
		for _, l := range low {
			switch cmp.Compare(h, l) {
			case 1:
				sum++
			case 0:
				sum += 0.5
			}
		}
	}
	return sum / float64(max(len(high)*len(low), 1))
}

func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
