//go:build goexperiment.simd && amd64

package embed

import (
	"math"
	"simd/archsimd"
)

// vec is eight floats. Constants are broadcast once, and the compiler keeps as many as
// fit in registers.
type vec = archsimd.Float32x8

func splat(x float32) vec { return archsimd.BroadcastFloat32x8(x) }

// exp8 is e^x to about two units in the last place, for x ≤ 88; below -87 it
// returns e^-87, which is negligible in a softmax. Cephes' expf: x = n·ln2 + r,
// e^x = 2^n·e^r, where ln2 is split in two so that r is exact.
func exp8(x vec) vec {
	x = x.Max(splat(-87))
	n := x.Mul(splat(math.Log2E)).RoundToEven()
	r := n.MulAdd(splat(-0.693359375), x)
	r = n.MulAdd(splat(2.12194440e-4), r)
	p := r.MulAdd(splat(1.9875691500e-4), splat(1.3981999507e-3))
	p = p.MulAdd(r, splat(8.3334519073e-3))
	p = p.MulAdd(r, splat(4.1665795894e-2))
	p = p.MulAdd(r, splat(1.6666665459e-1))
	p = p.MulAdd(r, splat(5.0000001201e-1))
	p = p.MulAdd(r.Mul(r), r).Add(splat(1))
	power := n.ConvertToInt32().Add(archsimd.BroadcastInt32x8(127)).ShiftAllLeft(23)
	return p.Mul(power.AsFloat32x8())
}

// geluAVX2 is x·Φ(x) with Φ by formula 7.1.26 of Abramowitz and Stegun, with an
// error of at most 1.5e-7, close to the precision of float32.
func geluAVX2(x []float32) {
	one, zero := splat(1), splat(0)
	for i := 0; i+8 <= len(x); i += 8 {
		v := archsimd.LoadFloat32x8Slice(x[i:])
		abs := v.Max(zero.Sub(v))
		z := abs.Mul(splat(1 / math.Sqrt2))
		t := one.Div(z.MulAdd(splat(0.3275911), one))
		p := t.MulAdd(splat(1.061405429), splat(-1.453152027))
		p = p.MulAdd(t, splat(1.421413741))
		p = p.MulAdd(t, splat(-0.284496736))
		p = p.MulAdd(t, splat(0.254829592))
		tail := p.Mul(t).Mul(exp8(zero.Sub(z.Mul(z)))) // 1 - erf(z)
		// x·Φ(x) = max(x,0) - |x|·tail/2, for either sign of x.
		v = v.Max(zero).Sub(abs.Mul(tail).Mul(splat(0.5)))
		v.StoreSlice(x[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func softmaxAVX2(x []float32) {
	top := archsimd.LoadFloat32x8Slice(x)
	for i := 8; i+8 <= len(x); i += 8 {
		top = top.Max(archsimd.LoadFloat32x8Slice(x[i:]))
	}
	most := splat(fold(top, func(a, b float32) float32 { return max(a, b) }))
	sum := splat(0)
	for i := 0; i+8 <= len(x); i += 8 {
		e := exp8(archsimd.LoadFloat32x8Slice(x[i:]).Sub(most))
		e.StoreSlice(x[i:])
		sum = sum.Add(e)
	}
	scale := splat(1 / fold(sum, func(a, b float32) float32 { return a + b }))
	for i := 0; i+8 <= len(x); i += 8 {
		archsimd.LoadFloat32x8Slice(x[i:]).Mul(scale).StoreSlice(x[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func addNormAVX2(x, add, gain, bias []float32) {
	plus := func(a, b float32) float32 { return a + b }
	n := float32(len(x))
	sum := splat(0)
	for i := 0; i+8 <= len(x); i += 8 {
		v := archsimd.LoadFloat32x8Slice(x[i:]).Add(archsimd.LoadFloat32x8Slice(add[i:]))
		v.StoreSlice(x[i:])
		sum = sum.Add(v)
	}
	mean := splat(fold(sum, plus) / n)
	squares := splat(0)
	for i := 0; i+8 <= len(x); i += 8 {
		d := archsimd.LoadFloat32x8Slice(x[i:]).Sub(mean)
		squares = d.MulAdd(d, squares)
	}
	variance := fold(squares, plus) / n
	scale := splat(float32(1 / math.Sqrt(float64(variance)+layerNormEpsilon)))
	for i := 0; i+8 <= len(x); i += 8 {
		d := archsimd.LoadFloat32x8Slice(x[i:]).Sub(mean).Mul(scale)
		d.MulAdd(archsimd.LoadFloat32x8Slice(gain[i:]), archsimd.LoadFloat32x8Slice(bias[i:])).StoreSlice(x[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// fold combines the eight lanes into one number.
func fold(v vec, f func(a, b float32) float32) float32 {
	var a [8]float32
	v.Store(&a)
	return f(f(f(a[0], a[4]), f(a[1], a[5])), f(f(a[2], a[6]), f(a[3], a[7])))
}
