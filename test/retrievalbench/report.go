package retrievalbench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the outcome for one dataset and ranking.
type report struct {
	Dataset    string             `json:"dataset"`
	Format     string             `json:"format"`
	Hash       string             `json:"sha256"`
	Ranking    string             `json:"ranking"`
	Server     string             `json:"server"`
	Model      string             `json:"model"`
	Units      int                `json:"messages"`
	Threshold  float64            `json:"threshold"`
	All        row                `json:"all"`
	Categories map[string]row     `json:"categories"`
	Extra      map[string]float64 `json:"extra"`
	LatencyP50 float64            `json:"latencyP50Ms"`
	LatencyP95 float64            `json:"latencyP95Ms"`
}

// row is the mean over the answerable questions of a category, in percent: R of the share of the evidence,
// Any and All of the questions with some and all of it.
type row struct {
	Questions     int     `json:"questions"`
	R5            float64 `json:"recall5"`
	R10           float64 `json:"recall10"`
	R25           float64 `json:"recall25"`
	R40           float64 `json:"recall40"`
	Any5          float64 `json:"any5"`
	Any10         float64 `json:"any10"`
	Any25         float64 `json:"any25"`
	All5          float64 `json:"all5"`
	All10         float64 `json:"all10"`
	All25         float64 `json:"all25"`
	SessionHit1   float64 `json:"sessionHit1"`
	SessionR5     float64 `json:"sessionRecall5"`
	Within500     float64 `json:"within500"`
	Within1000    float64 `json:"within1000"`
	Within2000    float64 `json:"within2000"`
	TokensAt10    float64 `json:"tokensAt10"`
	KeptThreshold float64 `json:"recall10AboveThreshold"`
	LatencyP50    float64 `json:"latencyP50Ms"`
	LatencyP95    float64 `json:"latencyP95Ms"`
}

// factCategories are BEAM's questions about facts.
var factCategories = []string{
	"information_extraction", "knowledge_update", "multi_session_reasoning", "temporal_reasoning", "contradiction_resolution",
}

func average(answers []answer, threshold float64) row {
	mean := func(f func(answer) float64) float64 {
		sum := 0.0
		for _, a := range answers {
			sum += f(a)
		}
		return 100 * sum / float64(max(len(answers), 1))
	}
	is := func(f func(answer) bool) float64 {
		return mean(func(a answer) float64 {
			if f(a) {
				return 1
			}
			return 0
		})
	}
	at := func(n int) float64 { return mean(func(a answer) float64 { return a.recall(n) }) }
	some := func(n int) float64 { return is(func(a answer) bool { return a.recall(n) > 0 }) }
	all := func(n int) float64 { return is(func(a answer) bool { return a.recall(n) == 1 }) }
	within := func(n int) float64 { return mean(func(a answer) float64 { return a.within(n) }) }
	return row{
		Questions: len(answers), R5: at(depths[0]), R10: at(depths[1]), R25: at(depths[2]), R40: at(depths[3]),
		Any5: some(depths[0]), Any10: some(depths[1]), Any25: some(depths[2]),
		All5: all(depths[0]), All10: all(depths[1]), All25: all(depths[2]),
		SessionHit1: is(answer.sessionHit), SessionR5: mean(func(a answer) float64 { return a.sessionRecall(5) }),
		Within500: within(budgets[0]), Within1000: within(budgets[1]), Within2000: within(budgets[2]),
		TokensAt10: mean(func(a answer) float64 { return float64(a.tokens(10)) }) / 100,
		KeptThreshold: mean(func(a answer) float64 {
			a.passages = slices.DeleteFunc(slices.Clone(a.passages), func(p passage) bool { return p.score < threshold })
			return a.recall(10)
		}),
		LatencyP50: ms(quantile(took(answers), 0.5)), LatencyP95: ms(quantile(took(answers), 0.95)),
	}
}

func took(answers []answer) []time.Duration {
	var out []time.Duration
	for _, a := range answers {
		out = append(out, a.took)
	}
	return out
}

// summarize fills the measures of a report.
func (r *report) summarize(answers []answer) {
	r.Categories, r.Extra = map[string]row{}, map[string]float64{}
	var answerable []answer
	var with []float64
	without := map[string][]float64{} // by category
	by := map[string][]answer{}
	for _, a := range answers {
		if len(a.sources) == 0 {
			without[a.category] = append(without[a.category], a.best())
			continue
		}
		with = append(with, a.best())
		answerable = append(answerable, a)
		by[a.category] = append(by[a.category], a)
	}
	r.All = average(answerable, r.Threshold)
	var facts []answer
	for name, list := range by {
		r.Categories[name] = average(list, r.Threshold)
		if slices.Contains(factCategories, name) {
			facts = append(facts, list...)
		}
	}
	if len(facts) > 0 {
		r.Categories["five fact categories"] = average(facts, r.Threshold)
	}
	r.compareStatements(answerable)
	for category, scores := range without {
		r.Extra[category+": AUC"] = auc(with, scores)
		r.Extra[category+": nothing found, percent"] = percentBelow(scores, r.Threshold)
	}
	r.Extra["answerable: evidence of the first ten lost, percent"] = lost(answerable, r.Threshold)
	r.LatencyP50, r.LatencyP95 = ms(quantile(took(answers), 0.5)), ms(quantile(took(answers), 0.95))
}

// compareStatements measures the order of updated facts and both sides of
// contradictions.
func (r *report) compareStatements(answers []answer) {
	updates, ordered, contradictions, both := 0, 0, 0, 0
	for _, a := range answers {
		if len(a.newer) > 0 && !slices.Equal(a.newer, a.older) {
			updates++
			if a.rank(a.newer) < a.rank(a.older) {
				ordered++
			}
		}
		if len(a.first) > 0 {
			contradictions++
			if a.rank(a.first) < min(10, len(a.passages)) && a.rank(a.second) < min(10, len(a.passages)) {
				both++
			}
		}
	}
	if updates > 0 {
		r.Extra["newerBeforeOlderPercent"] = 100 * float64(ordered) / float64(updates)
	}
	if contradictions > 0 {
		r.Extra["bothStatementsInTop10Percent"] = 100 * float64(both) / float64(contradictions)
	}
}

// lost returns the percentage of questions with sources among the first ten passages of
// which none reaches the threshold.
func lost(answers []answer, threshold float64) float64 {
	n, all := 0, 0
	for _, a := range answers {
		best := -1.0
		for _, p := range a.passages[:min(10, len(a.passages))] {
			if slices.Contains(a.sources, p.id) {
				best = max(best, p.score)
			}
		}
		if best >= 0 {
			all++
			if best < threshold {
				n++
			}
		}
	}
	return 100 * float64(n) / float64(max(all, 1))
}

func percentBelow(scores []float64, threshold float64) float64 {
	n := 0
	for _, s := range scores {
		if s < threshold {
			n++
		}
	}
	return 100 * float64(n) / float64(max(len(scores), 1))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// String formats the report as a table.
func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s, sha256 %s, %d messages), ranking %s, model %s, server %s; latency p50 %.1f ms, p95 %.1f ms\n",
		r.Dataset, r.Format, r.Hash, r.Units, r.Ranking, r.Model, r.Server, r.LatencyP50, r.LatencyP95)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "category\tn\tR@5\tany@5\tall@5\tR@10\tany@10\tall@10\tR@25\tany@25\tall@25\tR@40\t"+
		"in 500\tin 1k\tin 2k\ttokens@10\tsession Hit@1\tsession R@5\tR@10 kept\tp50 ms\tp95 ms\t")
	line := func(name string, x row) {
		fmt.Fprintf(w, "%s\t%d\t", name, x.Questions)
		for _, percent := range []float64{x.R5, x.Any5, x.All5, x.R10, x.Any10, x.All10, x.R25, x.Any25, x.All25, x.R40, x.Within500, x.Within1000, x.Within2000} {
			fmt.Fprintf(w, "%.1f\t", percent)
		}
		fmt.Fprintf(w, "%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", x.TokensAt10, x.SessionHit1, x.SessionR5, x.KeptThreshold, x.LatencyP50, x.LatencyP95)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Categories)) {
		line(name, r.Categories[name])
	}
	line("all answerable", r.All)
	_ = w.Flush() // to memory
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		fmt.Fprintf(&b, "  %s: %.2f\n", name, r.Extra[name])
	}
	return b.String()
}
