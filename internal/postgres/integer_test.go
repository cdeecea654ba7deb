package postgres

import (
	"math"
	"testing"
)

func TestInteger(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int32{
		0: 0, -1: -1, 7: 7, math.MaxInt32: math.MaxInt32, math.MinInt32: math.MinInt32,
		math.MaxInt32 + 1: math.MaxInt32, 1 << 32: math.MaxInt32, math.MaxInt: math.MaxInt32, math.MinInt: math.MinInt32,
	} {
		if got := integer(n); got != want {
			t.Errorf("integer(%d) = %d, want %d", n, got, want)
		}
	}
}
