package retrieve

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Learned weights, from hack/ranking. See docs/retrieval.md.
//
//go:embed weights.json
var weightsFile []byte

var learned = mustParseWeights(weightsFile)

// weights are those of the two sums of features. The second sum also has the features
// from featCentred on, of which near is the first sum of a neighbor.
type weights struct{ first, second features }

func mustParseWeights(raw []byte) (w weights) {
	var file struct{ First, Weights []float64 }
	if err := json.Unmarshal(raw, &file); err != nil || len(file.First) != int(featCentred) || len(file.Weights) != int(featureCount) {
		panic(fmt.Sprintf("weights.json has %d and %d weights instead of %d and %d: %v", len(file.First), len(file.Weights), featCentred, featureCount, err))
	}
	copy(w.first[:], file.First)
	copy(w.second[:], file.Weights)
	return w
}

// sameVector is the squared distance from the mean below which a vector has no direction.
const sameVector = 1e-6

// addCentred adds the cosines with the question after subtracting the mean of the
// candidates from both. It ignores what all of them have in common. A candidate without
// a vector gets the best value, as in cosines.
func addCentred(candidates []candidate, list []features, question []float32) {
	mean := meanVector(candidates)
	square, asked, best := Dot(mean, mean), Dot(mean, question), 0.0
	for i, d := range candidates {
		if len(d.Vector) == 0 {
			continue
		}
		own := Dot(d.Vector, mean)
		if distance := Dot(d.Vector, d.Vector) - 2*own + square; distance > sameVector {
			list[i][featCentred] = (d.cosine - own - asked + square) / math.Sqrt(distance)
		}
		best = max(best, list[i][featCentred])
	}
	for i, d := range candidates {
		if len(d.Vector) == 0 {
			list[i][featCentred] = best
		}
	}
	standardize(list, featCentred)
}

// meanVector returns the mean of the candidates with a vector, or nil without any.
func meanVector(candidates []candidate) (mean []float32) {
	n := float32(0)
	for _, d := range candidates {
		if mean == nil && len(d.Vector) > 0 {
			mean = make([]float32, len(d.Vector))
		}
		if len(d.Vector) > 0 {
			n++
		}
		for j, x := range d.Vector[:min(len(mean), len(d.Vector))] {
			mean[j] += x
		}
	}
	for j := range mean {
		mean[j] /= n
	}
	return mean
}

// addNear adds the better first score of the messages before and after, or the median if
// neither is a candidate: an answer is often next to another passage that matches.
func addNear(candidates []candidate, list []features) {
	scores, best := make([]float64, len(list)), make(map[position]float64, len(list))
	for i, f := range list {
		scores[i] = f.score(learned.first)
		at := position{candidates[i].Owner, candidates[i].Seq}
		if most, ok := best[at]; !ok || scores[i] > most {
			best[at] = scores[i]
		}
	}
	none := median(scores)
	for i, d := range candidates {
		before, precedes := best[position{d.Owner, d.Seq - 1}]
		after, follows := best[position{d.Owner, d.Seq + 1}]
		switch {
		case precedes && follows:
			list[i][featNear] = max(before, after)
		case precedes:
			list[i][featNear] = before
		case follows:
			list[i][featNear] = after
		default:
			list[i][featNear] = none
		}
	}
	standardize(list, featNear)
}

// median returns the upper median, or 0 of none. It sorts the values.
func median(values []float64) float64 {
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}
