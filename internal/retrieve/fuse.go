package retrieve

import (
	"cmp"
	"math"
	"slices"
)

// flatCosine is the minimum deviation assumed for the cosines of the candidates. Below
// it their order means little and must not outweigh the words.
const flatCosine = 0.01

// Fuse ranks the units of a lexical and a dense search, best first, by the sum of both
// scores in standard deviations from the mean of the candidates. The scores of the
// result are the logistic function of that sum, 0 to 1.
//
// A unit that is not in the lexical result gets the lowest possible score: 0 if that
// result is complete, otherwise (truncated) the lowest score in it. A unit without a
// cosine, which was found by its words, has no vector yet: it gets the best cosine, so
// that its words decide. The order of the inputs does not matter; ties are
// ordered by id, newest first.
func Fuse(lexical, dense []Hit, truncated bool) []Hit {
	words, floor := scores(lexical), lowest(lexical)
	if !truncated {
		floor = min(floor, 0)
	}
	cosines := scores(dense)
	ids := make([]UnitID, 0, len(words)+len(cosines))
	for id := range words {
		ids = append(ids, id)
	}
	for id := range cosines {
		if _, ok := words[id]; !ok {
			ids = append(ids, id)
			words[id] = floor
		}
	}
	slices.Sort(ids) // sums of floats depend on the order
	zWords, zCosines := standard(ids, words, 0), standard(ids, cosines, flatCosine)
	most := 0.0
	for id := range cosines {
		most = max(most, zCosines(id))
	}
	fused := make([]Hit, len(ids))
	for i, id := range ids {
		meaning := most
		if _, ok := cosines[id]; ok {
			meaning = zCosines(id)
		}
		fused[i] = Hit{ID: id, Score: logistic(zWords(id) + meaning)}
	}
	slices.SortFunc(fused, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID))
	})
	return fused
}

// scores returns the best score of each unit.
func scores(hits []Hit) map[UnitID]float64 {
	out := make(map[UnitID]float64, len(hits))
	for _, h := range hits {
		if s, ok := out[h.ID]; (!ok || h.Score > s) && !math.IsNaN(h.Score) {
			out[h.ID] = h.Score
		}
	}
	return out
}

func lowest(hits []Hit) float64 {
	if len(hits) == 0 {
		return 0
	}
	return slices.MinFunc(hits, func(a, b Hit) int { return cmp.Compare(a.Score, b.Score) }).Score
}

// standard returns a function that maps a unit with a score to it in standard deviations
// from the mean: 0 for all if they are equal. The deviation is at least least.
func standard(ids []UnitID, score map[UnitID]float64, least float64) func(UnitID) float64 {
	n := float64(len(score))
	mean, variance := 0.0, 0.0
	for _, id := range ids {
		if s, ok := score[id]; ok {
			mean += s / n
		}
	}
	for _, id := range ids {
		if s, ok := score[id]; ok {
			variance += (s - mean) * (s - mean) / n
		}
	}
	deviation := max(math.Sqrt(variance), least)
	return func(id UnitID) float64 {
		s, ok := score[id]
		if !ok || deviation < 1e-12 {
			return 0
		}
		return (s - mean) / deviation
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
