package embed

import (
	"math"
	"math/rand/v2"
	"testing"
)

func randoms(r *rand.Rand, n int, scale float32) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(r.NormFloat64()) * scale
	}
	return values
}

func maxDiff(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i] - b[i]))
		if !(d <= worst) { // also true for NaN
			worst = d
		}
	}
	return worst
}

// TestMatrixMultiply compares every available kernel with a float64 reference, with row
// counts around the tile size and weights of two layers.
func TestMatrixMultiply(t *testing.T) {
	t.Parallel()
	const in, outA, outB = 96, 64, 32
	r := rand.New(rand.NewPCG(1, 2))
	a := linear{weight: randoms(r, outA*in, 1), bias: randoms(r, outA, 1)}
	b := linear{weight: randoms(r, outB*in, 1), bias: randoms(r, outB, 1)}
	m := packMatrix(in, a, b)
	weight, bias := append(a.weight, b.weight...), append(a.bias, b.bias...)
	for _, kern := range availableKernels() {
		for _, n := range []int{1, 3, 4, 5, 8, 11} {
			rows := roundUp(n, tileRows)
			src, dst := randoms(r, rows*in, 1), make([]float32, rows*m.cols)
			m.multiply(kern, dst, src, n)
			want := make([]float32, n*m.cols)
			for row := range n {
				for col := range m.cols {
					sum := float64(bias[col])
					for i := range in {
						sum += float64(src[row*in+i]) * float64(weight[col*in+i])
					}
					want[row*m.cols+col] = float32(sum)
				}
			}
			if d := maxDiff(want, dst[:n*m.cols]); d > 1e-4 {
				t.Errorf("%s, %d rows: off by %g", kern.name, n, d)
			}
		}
	}
}

func TestKernelVectorFunctions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, kern := range availableKernels() {
		x := append(randoms(r, 1016, 3), 0, -0.001, 40, -40, 1e4, -1e4, 6, -6)
		want := append([]float32(nil), x...)
		plainGelu(want)
		kern.gelu(x)
		if d := maxDiff(want, x); d > 2e-6 {
			t.Errorf("%s: gelu off by %g", kern.name, d)
		}

		for _, scale := range []float32{0.01, 1, 50, 1000} {
			x = randoms(r, 64, scale)
			x[63] = float32(math.Inf(-1))
			want = append([]float32(nil), x...)
			plainSoftmax(want)
			kern.softmax(x)
			if d := maxDiff(want, x); d > 1e-6 {
				t.Errorf("%s: softmax of scale %v off by %g", kern.name, scale, d)
			}
		}

		x = randoms(r, hidden, 5)
		add, gain, bias := randoms(r, hidden, 2), randoms(r, hidden, 1), randoms(r, hidden, 1)
		want = append([]float32(nil), x...)
		plainAddNorm(want, add, gain, bias)
		kern.addNorm(x, add, gain, bias)
		if d := maxDiff(want, x); d > 1e-5 {
			t.Errorf("%s: addNorm off by %g", kern.name, d)
		}
	}
}
