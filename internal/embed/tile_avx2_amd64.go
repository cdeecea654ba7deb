//go:build goexperiment.simd && amd64

package embed

import (
	"simd/archsimd"
	"unsafe"
)

// tile4x16 is kernels.tile for AVX2 with FMA: the panel's 32 columns as two
// halves of 4 rows × 2 vectors of 8, the same register budget as tile4x32.
func tile4x16(dst []float32, ldd int, a []float32, lda int, panel []float32, k int, bias []float32) {
	_, _, _, _ = dst[3*ldd+31], a[3*lda+k-1], panel[k*panelCols-1], bias[31] // check all bounds once
	halfTile4x16(&dst[0], ldd, &a[0], lda, &panel[0], k, &bias[0])
	halfTile4x16(&dst[16], ldd, &a[0], lda, &panel[16], k, &bias[16])
	archsimd.ClearAVXUpperBits() // otherwise subsequent scalar code is slow on some Intel CPUs
}

func halfTile4x16(dst *float32, ldd int, a *float32, lda int, panel *float32, k int, bias *float32) {
	b0 := archsimd.LoadFloat32x8(vec8(bias, 0))
	b1 := archsimd.LoadFloat32x8(vec8(bias, 8))
	c00, c10, c20, c30 := b0, b0, b0, b0
	c01, c11, c21, c31 := b1, b1, b1, b1

	var zero archsimd.Float32x4
	p0 := unsafe.Pointer(a)
	p1 := unsafe.Add(p0, lda*4)
	p2 := unsafe.Add(p1, lda*4)
	p3 := unsafe.Add(p2, lda*4)
	b := unsafe.Pointer(panel)
	for i := range uintptr(k) {
		b0 = archsimd.LoadFloat32x8((*[8]float32)(unsafe.Add(b, i*128)))
		b1 = archsimd.LoadFloat32x8((*[8]float32)(unsafe.Add(b, i*128+32)))
		v := zero.SetElem(0, *(*float32)(unsafe.Add(p0, i*4))).Broadcast1To8()
		c00, c01 = v.MulAdd(b0, c00), v.MulAdd(b1, c01)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p1, i*4))).Broadcast1To8()
		c10, c11 = v.MulAdd(b0, c10), v.MulAdd(b1, c11)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p2, i*4))).Broadcast1To8()
		c20, c21 = v.MulAdd(b0, c20), v.MulAdd(b1, c21)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p3, i*4))).Broadcast1To8()
		c30, c31 = v.MulAdd(b0, c30), v.MulAdd(b1, c31)
	}

	c00.Store(vec8(dst, 0))
	c01.Store(vec8(dst, 8))
	c10.Store(vec8(dst, ldd))
	c11.Store(vec8(dst, ldd+8))
	c20.Store(vec8(dst, 2*ldd))
	c21.Store(vec8(dst, 2*ldd+8))
	c30.Store(vec8(dst, 3*ldd))
	c31.Store(vec8(dst, 3*ldd+8))
}

// vec8 returns the eight floats at p[i:]; the caller must check the bounds.
func vec8(p *float32, i int) *[8]float32 {
	return (*[8]float32)(unsafe.Add(unsafe.Pointer(p), i*4))
}
