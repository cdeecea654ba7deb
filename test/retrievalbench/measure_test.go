package retrievalbench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMeasures(t *testing.T) {
	t.Parallel()
	a := answer{
		question: question{sources: []string{"a", "b"}},
		sessions: map[string]string{"a": "one", "b": "two"},
		passages: []passage{{"x", "one", 400, 0.9}, {"a", "one", 100, 0.8}, {"b", "two", 1000, 0.1}},
	}
	got := []float64{a.recall(1), a.recall(2), a.recall(10), a.within(500), a.within(499), a.within(1500), a.sessionRecall(1), a.sessionRecall(5), float64(a.tokens(2)), a.best()}
	want := []float64{0, 0.5, 1, 0.5, 0, 1, 0.5, 1, 500, 0.9}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !a.sessionHit() {
		t.Error("the first passage is from the conversation of a source, but not a hit")
	}
	if got := auc([]float64{3, 2}, []float64{1, 2}); got != 0.875 {
		t.Errorf("AUC = %v, want 0.875", got)
	}
}

// TestAverage has one answer for each pair of ranks of its two sources.
func TestAverage(t *testing.T) {
	t.Parallel()
	var answers []answer
	for i, ranks := range [][]int{{0, 3}, {2, 20}, {4, 24}, {7, 8}, {7, 30}, {15, 30}} {
		a := answer{question: question{sources: []string{"0", "1"}}, took: time.Duration(60-10*i) * time.Millisecond}
		for rank := range 40 {
			a.passages = append(a.passages, passage{id: fmt.Sprint(slices.Index(ranks, rank))})
		}
		answers = append(answers, a)
	}
	r := average(answers, 0)
	var got []float64
	for _, percent := range []float64{r.Any5, r.Any10, r.Any25, r.All5, r.All10, r.All25} {
		got = append(got, math.Round(percent*6/100))
	}
	if d := cmp.Diff([]float64{3, 5, 6, 1, 2, 4}, got); d != "" {
		t.Errorf("answers with any and all sources among the first 5, 10 and 25: -want +got\n%s", d)
	}
	if d := cmp.Diff([]float64{40, 60}, []float64{r.LatencyP50, r.LatencyP95}); d != "" {
		t.Errorf("p50 and p95 in milliseconds: -want +got\n%s", d)
	}
}

// Small files in both formats.
const (
	locomoSet = `[{"sample_id":"c","conversation":{"speaker_a":"Ann","session_1":[{"speaker":"Ann","dia_id":"D1:1","text":"Hi"},{"speaker":"Bo","dia_id":"D1:2","text":"Yes"}],
	"session_1_date_time":"1:56 pm on 8 May, 2023"},"qa":[{"question":"Who?","evidence":["D1:1; D:1:2"],"category":4},
	{"question":"No answer","evidence":["D1:1"],"category":5},{"question":"Unknown source","evidence":["D9:9"],"category":1}]}]`
	beamSet = `[{"id":"b","sessions":[[{"id":0,"role":"user","text":"Hi","date":"2024-03-15"}]],"probes":[{"category":"abstention","question":"?","sources":[]},
	{"category":"knowledge_update","question":"?","sources":[0],"groups":{"updated_info":[0]}}]}]`
)

func TestLoad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		raw, format string
		want        []string // sources of the questions
	}{
		"LoCoMo": {
			locomoSet,
			"LoCoMo", []string{"D1:1", "D1:2"},
		},
		"BEAM": {
			beamSet,
			"BEAM", []string{"0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := load(writeSet(t, tc.raw))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, q := range d.histories[0].questions {
				got = append(got, q.sources...)
			}
			if d.format != tc.format {
				t.Errorf("format %s, want %s", d.format, tc.format)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sources: -want +got\n%s", diff)
			}
		})
	}
}
