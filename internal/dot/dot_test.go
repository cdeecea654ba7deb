package dot

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// sizes are numbers of components below, at and above the limits of each implementation.
var sizes = []int{0, 1, 7, 8, 9, 31, 32, 33, 40, 63, 64, 384, 391, maxSummed - 1, maxSummed, maxSummed + 33, 1<<14 + 5}

func TestProductsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (int16, byte) { return int16(r.IntN(2*MaxComponent+1) - MaxComponent), byte(r.Uint32()) }
	for name, next := range map[string]func() (int16, byte){
		"random":    random,
		"largest":   func() (int16, byte) { return MaxComponent, 0x7f },
		"opposite":  func() (int16, byte) { return MaxComponent, 0x80 },
		"smallest":  func() (int16, byte) { return -MaxComponent, 0x80 },
		"alternate": func() (int16, byte) { return []int16{MaxComponent, -MaxComponent}[r.IntN(2)], 0x80 },
	} {
		for _, n := range sizes {
			components, code, want := make([]int16, n), make([]byte, n), int64(0)
			for i := range code {
				components[i], code[i] = next()
				want += int64(components[i]) * int64(int8(code[i]))
			}
			eachImplementation(t, func(t *testing.T) {
				if got := NewQuery(components).Dot(code); got != want {
					t.Errorf("%s, %d components: the product is %d, want %d", name, n, got, want)
				}
			})
		}
	}
}

func TestProductsOfDifferentLengths(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		t.Helper()
		three, forty := NewQuery([]int16{1, 10, 100}), NewQuery(slices.Repeat([]int16{1}, 80)[:40])
		ones := bytes.Repeat([]byte{1}, 100)
		for _, test := range []struct{ got, want int64 }{{three.Dot([]byte{2, 3}), 32}, {three.Dot(ones), 111}, {forty.Dot(ones), 40}, {forty.Dot(ones[:39]), 39}} {
			if test.got != test.want {
				t.Errorf("the product is %d, want %d", test.got, test.want)
			}
		}
	})
}

func BenchmarkDot(b *testing.B) {
	components, code := make([]int16, 384), make([]byte, 384)
	eachImplementation(b, func(b *testing.B) {
		b.Helper()
		q := NewQuery(components)
		for b.Loop() {
			q.Dot(code)
		}
	})
}
