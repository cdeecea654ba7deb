package retrieve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// letters embeds a text by its letters, so that similar texts have similar vectors.
type letters struct{ fails error }

func (l letters) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := make([]float32, 26)
	norm := 0.0
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' {
			v[r-'a']++
		}
	}
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(max(math.Sqrt(norm), 1))
	}
	return v, l.fails
}

func (l letters) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i], _ = l.EmbedQuery(ctx, text)
	}
	return out, l.fails
}
func (letters) Model() string   { return "letters" }
func (letters) Dimensions() int { return 26 }

// distinctPairs are references that letters tells apart.
var distinctPairs = references{
	Pairs:     [][2]string{{"aaaa", "aaa"}, {"bbbb", "bbb"}},
	Texts:     []string{"cccc", "dddd"},
	Unrelated: []string{"eeee", "ffff", "gggg"},
}

func TestMarginIsComparable(t *testing.T) {
	t.Parallel()
	b, err := measure(t.Context(), letters{}, distinctPairs)
	if err != nil || b == nil {
		t.Fatalf("measure = %v, %v", b, err)
	}
	for _, kind := range []Kind{Memory, Chat} {
		q, _ := letters{}.EmbedQuery(t.Context(), "aaa")
		texts, _ := letters{}.Embed(t.Context(), formatted(kind, []string{"aaaaaaaaaaaaaa", "zzzzzzzzzzzzzz"}))
		equal, other := b.margin(kind, q, Dot(q, texts[0])), b.margin(kind, q, Dot(q, texts[1]))
		if equal < 0.5 {
			t.Errorf("kind %d: margin of a match = %.2f, want at least half of the best", kind, equal)
		}
		if other > 0.2 {
			t.Errorf("kind %d: margin of another text = %.2f, want about 0", kind, other)
		}
		if noise := b.noise(kind, texts[:1]); noise > 0.2 {
			t.Errorf("kind %d: noise = %.2f, want about 0", kind, noise)
		}
	}
}

// The scores of a model that does not tell the references apart are not calibrated.
func TestMeasureFails(t *testing.T) {
	t.Parallel()
	equal := references{Pairs: [][2]string{{"a", "a"}, {"a", "a"}}, Texts: []string{"a"}, Unrelated: []string{"a"}}
	if b, err := measure(t.Context(), letters{}, equal); b != nil || err != nil {
		t.Errorf("measure of equal texts = %v, %v, want none", b, err)
	}
	failure := errors.New("unavailable")
	if _, err := measure(t.Context(), letters{failure}, distinctPairs); !errors.Is(err, failure) {
		t.Errorf("error = %v, want %v", err, failure)
	}
}

// judged returns the scores of memories, in order, for a question.
func judged(t testing.TB, q Query, list ...Described) []float64 {
	t.Helper()
	return judgedShare(t, 1, q, list...)
}

// judgedShare is judged for a share of the memories that were found.
func judgedShare(t testing.TB, share float64, q Query, list ...Described) []float64 {
	t.Helper()
	b, err := measure(t.Context(), letters{}, distinctPairs)
	if err != nil {
		t.Fatal(err)
	}
	c := comparison{query: q, all: list, share: share}
	c.vector, _ = letters{}.EmbedQuery(t.Context(), q.Text)
	ranking := make([]Hit, len(list))
	for i, d := range list {
		ranking[i] = Hit{ID: d.ID, Score: 0.9 - 0.01*float64(i)}
	}
	c.judge(b, ranking)
	out := make([]float64, len(ranking))
	for i, h := range ranking {
		if h.ID != list[i].ID {
			t.Errorf("position %d is unit %d, want %d: judging keeps the order", i, h.ID, list[i].ID)
		}
		out[i] = h.Score
	}
	return out
}

func described(id UnitID, text string) Described {
	v, _ := letters{}.EmbedQuery(context.Background(), text)
	return Described{ID: id, Text: text, Vector: v}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	may := Window{From: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	inMay := described(1, "banana cake")
	inMay.At = may.From
	withoutVector := Described{ID: 1, Text: "xylophone lessons"}
	for name, test := range map[string]struct {
		reason   string
		query    Query
		unit     Described
		relevant bool
	}{
		"Match":         {"similar in meaning", Query{Kind: Memory, Text: "aabb"}, described(1, "bbaa"), true},
		"Gibberish":     {"nothing in common", Query{Kind: Memory, Text: "qxqx"}, described(1, "banana cake"), false},
		"Chat":          {"nothing in common", Query{Kind: Chat, Text: "qxqx"}, described(1, "banana cake"), false},
		"Keyword":       {"contains all words", Query{Kind: Memory, Text: "cake"}, described(1, "zzz zzz zzz zzz zzz zzz zzz cake"), true},
		"Window":        {"from the time that the question is about", Query{Kind: Chat, Text: "qxqx", Window: may}, inMay, true},
		"NoVector":      {"it cannot be judged before it is embedded", Query{Kind: Memory, Text: "wooden xylophone"}, withoutVector, true},
		"NoVectorNoHit": {"nothing in common", Query{Kind: Memory, Text: "qxqx"}, withoutVector, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judged(t, test.query, test.unit)[0]
			if (got >= DefaultMinScore) != test.relevant {
				t.Errorf("%s: score %.3f, threshold %.2f, want relevant %v", test.reason, got, DefaultMinScore, test.relevant)
			}
		})
	}
}

// A single word, such as that of a first try, is similar to all questions. It neither hides the answer
// nor becomes one.
func TestJudgeFragments(t *testing.T) {
	t.Parallel()
	question := Query{Kind: Memory, Text: "aabb"}
	answer := described(1, "abab abab")
	alone := judged(t, question, answer)[0]
	for _, text := range []string{"efg", "2026-05-03 efg", " efg\n"} {
		fragment := described(2, text)
		got := judged(t, question, answer, fragment)
		if got[0] != alone {
			t.Errorf("with %q the answer has score %.3f, want %.3f as alone", text, got[0], alone)
		}
		if got[1] >= DefaultMinScore {
			t.Errorf("%q has score %.3f, want that it is not relevant", text, got[1])
		}
	}
	if got := judged(t, question, answer, described(2, "efg efg efg efg efg efg")); got[0] == alone {
		t.Error("a longer text has no influence on the score")
	}
}

// A text in another script is as similar to the unrelated questions as to any other. It neither hides the answer nor becomes one.
func TestJudgeOtherScripts(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{Memory, Chat} {
		question := Query{Kind: kind, Text: "aabb"}
		answer := described(1, "abab abab")
		alone := judged(t, question, answer)[0]
		for _, text := range []string{"ฉันชอบกินข้าวซอยที่เชียงใหม่", "2026-05-03 我最喜欢的颜色是蓝色 (ok)", "😀😀😀"} {
			foreign := described(2, "efg efg efg")
			foreign.Text = text
			if got := judged(t, question, answer, foreign); got[0] != alone {
				t.Errorf("kind %v: with %q the answer has score %.3f, want %.3f as alone", kind, text, got[0], alone)
			}
			if got := judged(t, question, foreign)[0]; got >= DefaultMinScore {
				t.Errorf("kind %v: %q has score %.3f, want that it is not relevant", kind, text, got)
			}
		}
	}
	thai := described(1, "abab abab")
	thai.Text = "ฉันชอบกินข้าวซอยที่เชียงใหม่"
	question := Query{Kind: Memory, Text: "ฉันชอบ aabb"}
	if alone, got := judged(t, question, thai)[0], judged(t, question, thai, described(2, "efg efg efg"))[0]; got == alone {
		t.Error("to a question in another script, a text has no influence on the score")
	}
}

// A message that contains all words of the question is relevant, which says nothing about others.
func TestJudgeEachRankOfMessages(t *testing.T) {
	t.Parallel()
	b, err := measure(t.Context(), letters{}, distinctPairs)
	if err != nil {
		t.Fatal(err)
	}
	list := []Described{described(1, "We stay in Stone Town"), described(2, "My bicycle has a flat tire"), described(3, "About 3000 euros")}
	c := comparison{query: Query{Kind: Chat, Text: "Stone Town"}, all: list, share: 1}
	c.vector, _ = letters{}.EmbedQuery(t.Context(), c.query.Text)
	ranking := []Hit{{1, logistic(3)}, {2, logistic(2)}, {3, logistic(-6)}}
	c.judge(b, ranking)
	for i, want := range []bool{true, true, false} {
		if got := ranking[i].Score >= DefaultMinScore; got != want {
			t.Errorf("message %d has score %.3f, want relevant %t", ranking[i].ID, ranking[i].Score, want)
		}
	}
	if ranking[1].Score > 0.8*ranking[0].Score {
		t.Errorf("scores %v, want that the second is clearly lower than the first", ranking)
	}
}

// The noise of candidates that are not compared counts.
func TestJudgeShare(t *testing.T) {
	t.Parallel()
	question, answer := Query{Kind: Memory, Text: "aabb"}, described(1, "abab efgh")
	fragment := described(2, "efg")
	all := judgedShare(t, 1, question, answer, fragment)
	half := judgedShare(t, 0.5, question, answer, fragment)
	for i := range all {
		if change := logit(half[i]) - logit(all[i]); math.Abs(change-learnedRelevance.Weights[relNoise]*noiseGrowth) > 1e-9 {
			t.Errorf("memory %d: the logit changes by %.3f if half of the memories are compared, want that of %v more noise", i, change, noiseGrowth)
		}
	}
}

// Scores are probabilities, and fall with the rank.
func TestScoresFall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var list []Described
		for i, text := range rapid.SliceOfN(rapid.StringMatching(`[a-h]{1,8}( [a-h]{1,8})?`), 1, 9).Draw(r, "texts") {
			list = append(list, described(UnitID(i+1), text))
		}
		kind := rapid.SampledFrom([]Kind{Memory, Chat}).Draw(r, "kind")
		got := judged(t, Query{Kind: kind, Text: rapid.StringMatching(`[a-h]{1,8}`).Draw(r, "question")}, list...)
		rising := slices.Clone(got)
		slices.Reverse(rising)
		if !slices.IsSorted(rising) || got[0] > 1 || got[len(got)-1] < 0 {
			r.Errorf("scores %v, want falling from 1 to 0", got)
		}
	})
}

func TestMinScore(t *testing.T) {
	t.Parallel()
	hits := []Hit{{1, 0.9}, {2, 0.5}, {3, DefaultMinScore / 2}}
	for name, test := range map[string]struct {
		reason     string
		calibrated bool
		minScore   *float64
		want       int
	}{
		"Default":      {"irrelevant hits are omitted", true, nil, 2},
		"All":          {"0 returns all", true, new(0.0), 3},
		"High":         {"explicit", true, new(0.6), 1},
		"Uncalibrated": {"the default does not apply", false, nil, 3},
		"Explicit":     {"an explicit score applies to probabilities only", false, new(0.6), 3},
	} {
		if got := (ranked{hits: hits, calibrated: test.calibrated}).above(test.minScore); len(got) != test.want {
			t.Errorf("%s: %s: %d hits, want %d", name, test.reason, len(got), test.want)
		}
	}
	for minScore, valid := range map[float64]bool{0: true, 1: true, -0.1: false, 1.1: false, math.NaN(): false} {
		var f fault.Fields
		CheckMinScore(&f, &minScore)
		if (f.Err() == nil) != valid {
			t.Errorf("CheckMinScore(%v) = %v, want valid %v", minScore, f.Err(), valid)
		}
	}
}

func TestRelevantResults(t *testing.T) {
	t.Parallel()
	r := Result{Found: []Found{{Score: 0.9}, {Score: DefaultMinScore}, {Score: 0}}, Calibrated: true}
	got := []int{r.Relevant()}
	r.Calibrated = false
	if diff := cmp.Diff([]int{2, 3}, append(got, r.Relevant())); diff != "" {
		t.Errorf("relevant (-want +got):\n%s", diff)
	}
}

// BenchmarkCoverage compares the terms of a question with those of a hundred memories, as every search does.
func BenchmarkCoverage(b *testing.B) {
	units, ranking := map[UnitID]Described{}, []Hit{}
	for id := range UnitID(100) {
		units[id] = Described{ID: id, Text: fmt.Sprintf("2025-05-09 Planted %d tulips in the garden behind the house and prefers the window seat on trains", id)}
		ranking = append(ranking, Hit{ID: id})
	}
	c := comparison{query: Query{Text: "where do I like to sit on trains?"}}
	b.ReportAllocs()
	for b.Loop() {
		c.coverage(units, ranking)
	}
}

// Without the vector of the query, scores are not comparable with a minimum score: results by words are kept.
func TestMinScoreAppliesToCalibratedScores(t *testing.T) {
	t.Parallel()
	s := &stores{lexical: []Hit{{1, 1}, {2, 2}, {3, 3}}, embedErr: errUnavailable}
	now := time.Now()
	r, err := s.engine(&now).Search(t.Context(), tenant.Scope{Tenant: "t", User: 1}, homeLocation,
		Query{Kind: Memory, Text: "q", Limit: 5, MinScore: new(0.9)})
	if err != nil || r.Calibrated {
		t.Fatalf("Search: calibrated %t, error %v", r.Calibrated, err)
	}
	if len(r.Found) != 3 {
		t.Errorf("found %v, want the 3 matches by words", r.Found)
	}
}

// The logistic function of a large sum is 1, whose logit is infinite.
func TestJudgeCertainMessage(t *testing.T) {
	t.Parallel()
	b, err := measure(t.Context(), letters{}, distinctPairs)
	if err != nil {
		t.Fatal(err)
	}
	c := comparison{query: Query{Kind: Chat, Text: "aabb"}, all: []Described{described(1, "aabb"), described(2, "abef"), described(3, "efgh")}, share: 1}
	c.vector, _ = letters{}.EmbedQuery(t.Context(), c.query.Text)
	ranking := []Hit{{1, logistic(40)}, {2, logistic(40)}, {3, logistic(-800)}}
	c.judge(b, ranking)
	for i, h := range ranking {
		if !(h.Score >= 0 && h.Score <= 1) || i > 0 && h.Score > ranking[i-1].Score {
			t.Errorf("scores %v, want falling from 1 to 0", ranking)
		}
	}
}
