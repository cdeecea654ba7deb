package retrieve

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFuse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason         string
		lexical, dense []Hit
		truncated      bool
		want           []UnitID
	}{
		"Nothing":      {"no candidates", nil, nil, false, []UnitID{}},
		"One":          {"a single candidate", nil, []Hit{{1, 0.3}}, false, []UnitID{1}},
		"DenseOnly":    {"without lexical matches, ordered by cosine", nil, []Hit{{1, 0.2}, {2, 0.5}, {3, 0.4}}, false, []UnitID{2, 3, 1}},
		"LexicalOnly":  {"without the embedder, ordered by lexical score", []Hit{{1, 4}, {2, 9}}, nil, false, []UnitID{2, 1}},
		"BothAgree":    {"a unit found by both ranks first", []Hit{{1, 5}}, []Hit{{1, 0.6}, {2, 0.6}, {3, 0.1}}, false, []UnitID{1, 2, 3}},
		"SingleWord":   {"a single lexical match gets the full lexical weight", []Hit{{2, 1}}, []Hit{{1, 0.50}, {2, 0.49}, {3, 0.2}}, false, []UnitID{2, 1, 3}},
		"NoVector":     {"the words decide where a unit without a vector ranks", []Hit{{9, 5}, {1, 4}}, []Hit{{1, 0.6}, {2, 0.1}}, false, []UnitID{9, 1, 2}},
		"Truncated":    {"units missing from a truncated lexical list get its lowest score, not 0", []Hit{{1, 10}, {2, 10}}, []Hit{{1, 0.3}, {2, 0.2}, {3, 0.9}}, true, []UnitID{3, 1, 2}},
		"Ties":         {"newest first", []Hit{{1, 5}, {2, 5}}, []Hit{{1, 0.5}, {2, 0.5}}, false, []UnitID{2, 1}},
		"FlatCosines":  {"nearly equal cosines do not outweigh lexical scores", []Hit{{1, 3}, {2, 1}}, []Hit{{1, 0.5001}, {2, 0.5002}, {3, 0.4999}}, false, []UnitID{1, 2, 3}},
		"DoubleScores": {"the best score of a unit counts", []Hit{{1, 1}, {1, 9}, {2, 5}}, nil, false, []UnitID{1, 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := []UnitID{}
			for _, h := range Fuse(tc.lexical, tc.dense, tc.truncated) {
				got = append(got, h.ID)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// hits draws scores for some of the ids 1 to 30, each once.
func hits(t *rapid.T, label string, low, high float64) []Hit {
	ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 30), 0, 30, rapid.ID[int64]).Draw(t, label)
	out := make([]Hit, len(ids))
	for i, id := range ids {
		out[i] = Hit{UnitID(id), rapid.Float64Range(low, high).Draw(t, "score")}
	}
	return out
}

func TestFuseProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lexical, dense := hits(t, "lexical", 0, 1e6), hits(t, "dense", -1, 1)
		truncated := rapid.Bool().Draw(t, "truncated")
		fused := Fuse(lexical, dense, truncated)

		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		shuffle := func(h []Hit) []Hit {
			h = slices.Clone(h)
			r.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
			return h
		}
		if d := cmp.Diff(fused, Fuse(shuffle(lexical), shuffle(dense), truncated)); d != "" {
			t.Fatalf("the result depends on the input order: -want +got\n%s", d)
		}

		words, cosines := scores(lexical), scores(dense)
		rank := map[UnitID]int{}
		for i, h := range fused {
			if !(h.Score >= 0 && h.Score <= 1) {
				t.Fatalf("score of %d is %v", h.ID, h.Score)
			}
			if i > 0 && h.Score > fused[i-1].Score {
				t.Fatalf("%v comes after %v", h, fused[i-1])
			}
			if _, again := rank[h.ID]; again {
				t.Fatalf("%d is in the result twice", h.ID)
			}
			rank[h.ID] = i
		}
		for id := range words {
			if _, ok := rank[id]; !ok {
				t.Fatalf("%d, a lexical hit, is missing", id)
			}
		}
		for a := range cosines {
			if _, ok := rank[a]; !ok {
				t.Fatalf("%d, a dense hit, is missing", a)
			}
			for b := range cosines {
				_, inA := words[a]
				_, inB := words[b]
				if inA && inB && words[a] > words[b] && cosines[a] > cosines[b] && fused[rank[a]].Score < fused[rank[b]].Score {
					t.Fatalf("%d has higher lexical and dense scores than %d, but ranks below it", a, b)
				}
			}
		}
	})
}
