package postgres_test

import (
	"context"
	"math"
	"testing"
)

func unitVector(v []float32) []float32 {
	n := float32(math.Sqrt(cosine(v, v)))
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = x / n
	}
	return out
}

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func contextWithoutCancel(t testing.TB) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}
