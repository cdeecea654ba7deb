package embed

import "math"

// pooling is how the hidden states of a text's tokens become one vector.
type pooling int

const (
	poolMean  pooling = iota // their mean
	poolFirst                // that of the first token, [CLS]
)

// apply returns a vector of length 1. states has a multiple of dimensions numbers.
func (p pooling) apply(states []float32, dimensions int) []float32 {
	vector := make([]float32, dimensions)
	copy(vector, states)
	if p == poolMean {
		for states = states[dimensions:]; len(states) > 0; states = states[dimensions:] {
			for i, v := range states[:dimensions] {
				vector[i] += v
			}
		}
	}
	normalize(vector)
	return vector
}

// normalize scales v to length 1. It returns false and does not change v if v is
// zero or not finite.
func normalize(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return false
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return true
}
