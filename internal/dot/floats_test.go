package dot

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range sizes {
		// The vectors begin at any address, and b is longer.
		a, b := make([]float32, n+3)[3:], make([]float32, n+8)
		want, size := 0.0, 0.0
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
			product := float64(a[i]) * float64(b[i])
			want, size = want+product, size+math.Abs(product)
		}
		for i := n; i < len(b); i++ {
			b[i] = float32(math.NaN()) // not read
		}
		eachImplementation(t, func(t *testing.T) {
			for _, got := range []float64{Floats(a, b), Floats(b, a)} {
				if math.IsNaN(got) || math.Abs(got-want) > 1e-6*size {
					t.Errorf("%d components: the product is %v, want %v", n, got, want)
				}
			}
		})
	}
}

func BenchmarkFloats(b *testing.B) {
	x, y := make([]float32, 384), make([]float32, 384)
	eachImplementation(b, func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			Floats(x, y)
		}
	})
}
