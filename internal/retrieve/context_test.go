package retrieve

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sample is what hack/ranking/golden.py computed.
type sample struct {
	Messages []struct {
		Owner, Sender, Day, Text string
		Seq                      int
		Vector                   []float32
		Lexical                  float64
	}
	Questions []struct {
		Question string
		Vector   []float32
		Features [][]float64
		Scores   []float64
	}
}

func loadSample(t *testing.T) (s sample) {
	t.Helper()
	raw, err := os.ReadFile("testdata/ranking.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s sample) comparison(t *testing.T, question string, vector []float32) comparison {
	t.Helper()
	c := comparison{query: Query{Text: question}, vector: vector, lexical: map[UnitID]float64{}}
	for i, m := range s.Messages {
		at, err := time.Parse(time.DateOnly, m.Day)
		if err != nil {
			t.Fatal(err)
		}
		id := UnitID(i + 1)
		c.all = append(c.all, Described{ID: id, Owner: m.Owner, Seq: m.Seq, Human: m.Sender == "human", At: at, Text: m.Text, Vector: m.Vector})
		c.lexical[id] = m.Lexical
	}
	c.speakers()
	return c
}

// The server computes the features and scores with which the weights were learned.
func TestFeaturesEqualThoseOfTheScript(t *testing.T) {
	t.Parallel()
	const tolerance = 1e-4
	s := loadSample(t)
	for _, q := range s.Questions {
		c := s.comparison(t, q.Question, q.Vector)
		candidates, list := c.compared()
		if len(list) != len(q.Features) {
			t.Fatalf("%q: %d candidates, want %d", q.Question, len(list), len(q.Features))
		}
		for i, want := range q.Features {
			for j, x := range list[i] {
				if math.Abs(x-want[j]) > tolerance {
					t.Errorf("%q, feature %d of %q is %v, want %v", q.Question, j, candidates[i].Text, x, want[j])
				}
			}
			if got := list[i].score(learned.second); math.Abs(got-q.Scores[i]) > tolerance {
				t.Errorf("%q, score of %q is %v, want %v", q.Question, candidates[i].Text, got, q.Scores[i])
			}
		}
	}
}

func TestExclaims(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "Thanks": false, "Thanks!": true, "Thanks! Bye.": true, "x != y": false, "!a, b!\n": true, "a!b": false, "Great!!": true, "\xff!\xff": false, "!": true,
	} {
		if got := exclaims(text); got != want {
			t.Errorf("exclaims(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestAddressed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "young yours": 0, "You're right": 1, "your cat likes YOU": 2, "you, you and you": 2} {
		if got := addressed(plainWords(text)); got != want {
			t.Errorf("%q addresses the reader %d times, want %d", text, got, want)
		}
	}
}

// Between equal messages, one that is next to a passage which matches ranks first.
func TestRankPrefersNeighborsOfMatches(t *testing.T) {
	t.Parallel()
	c := comparison{query: Query{Text: "Which film did we like?"}, vector: []float32{1, 0}, lexical: map[UnitID]float64{2: 1}, all: []Described{
		{ID: 1, Owner: "o", Seq: 1, Text: "The second one.", Vector: []float32{0.5, 0.5}},
		{ID: 2, Owner: "o", Seq: 2, Text: "We liked that film.", Vector: []float32{0.5, 0.5}},
		{ID: 3, Owner: "o", Seq: 8, Text: "The second one.", Vector: []float32{0.5, 0.5}},
		{ID: 4, Owner: "o", Seq: 12, Text: "Rain again today.", Vector: []float32{0.5, 0.5}},
	}}
	got := c.rank()
	at := func(id UnitID) int { return slices.IndexFunc(got, func(h Hit) bool { return h.ID == id }) }
	if at(1) > at(3) {
		t.Errorf("ranking %v, want 1, which is next to 2, before 3", got)
	}
}

// What the candidates have in common does not count: adding it to all vectors leaves their order.
func TestCentredIgnoresWhatIsCommon(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		vector := rapid.SliceOfN(rapid.Map(rapid.IntRange(-8, 8), func(n int) float32 { return float32(n) / 8 }), 3, 3)
		list := append(rapid.SliceOfN(vector, 0, 20).Draw(t, "vectors"), []float32{1, 0, 0}, []float32{-1, 0, 0})
		question, common := []float32{1, 0, 0}, vector.Draw(t, "common")
		before, after := centred(list, question, make([]float32, 3)), centred(list, question, common)
		for i := range before {
			if math.Abs(before[i]-after[i]) > 0.01 {
				t.Fatalf("feature %d is %v, and %v with %v added to all vectors", i, before[i], after[i], common)
			}
		}
	})
}

// A message without a vector is not ranked below those with one.
func TestCentredOfAMessageWithoutVector(t *testing.T) {
	t.Parallel()
	got := centred([][]float32{{1, 0, 0}, {0, 1, 0}, nil, {0, 0, 1}}, []float32{1, 0, 0}, make([]float32, 3))
	if got[2] != slices.Max(got) {
		t.Errorf("features %v, want the best value for the third message, which has no vector", got)
	}
}

// Equal vectors say nothing about the order.
func TestCentredOfEqualVectors(t *testing.T) {
	t.Parallel()
	list := [][]float32{{0.1, 0.7, 0.3}, {0.1, 0.7, 0.3}, {0.1, 0.7, 0.3}}
	if diff := cmp.Diff(make([]float64, len(list)), centred(list, []float32{0.9, 0.2, 0.4}, make([]float32, 3))); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

// centred returns the feature of vectors to all of which, and to the question, common is added.
func centred(vectors [][]float32, question, common []float32) (out []float64) {
	add := func(v []float32) []float32 {
		sum := make([]float32, len(v))
		for i := range v {
			sum[i] = v[i] + common[i]
		}
		return sum
	}
	asked := add(question)
	candidates, list := make([]candidate, len(vectors)), make([]features, len(vectors))
	for i, v := range vectors {
		candidates[i] = candidate{Described{ID: UnitID(i), Text: strconv.Itoa(i), Vector: add(v)}, Dot(add(v), asked)}
	}
	addCentred(candidates, list, asked)
	for _, f := range list {
		out = append(out, f[featCentred])
	}
	return out
}
