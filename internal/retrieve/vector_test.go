package retrieve

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDot(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 3, 4, 5, 384, 1027} {
		a, b := make([]float32, n), make([]float32, n+8) // b is longer
		want, size := 0.0, 0.0
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
			product := float64(a[i]) * float64(b[i])
			want, size = want+product, size+math.Abs(product)
		}
		for i := n; i < len(b); i++ {
			b[i] = float32(math.NaN()) // not read
		}
		for _, got := range []float64{Dot(a, b), Dot(b, a)} {
			if math.IsNaN(got) || math.Abs(got-want) > 1e-6*size {
				t.Errorf("%d components: the product is %v, want %v", n, got, want)
			}
		}
	}
}
