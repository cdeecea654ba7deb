//go:build goexperiment.simd && amd64

package embed

import (
	"simd/archsimd"
	"unsafe"
)

// tile6x32 is the AVX-512 micro kernel: 6 rows of a times one panel of 32
// columns, twelve 16-lane accumulators. Why 6×32: each step of k loads two
// vectors of the panel and six scalars and does twelve independent fused
// multiply-adds, enough to hide their four cycles of latency on two ports, and
// 12 accumulators + 2 panel vectors + 1 broadcast stay within what the compiler
// can name (it does not use the upper 16 vector registers).
func tile6x32(dst *float32, ldd int, a *float32, lda int, panel *float32, k int, bias *float32) {
	b0 := archsimd.LoadFloat32x16(vec16(bias, 0))
	b1 := archsimd.LoadFloat32x16(vec16(bias, 16))
	c00, c10, c20, c30, c40, c50 := b0, b0, b0, b0, b0, b0
	c01, c11, c21, c31, c41, c51 := b1, b1, b1, b1, b1, b1

	var zero archsimd.Float32x4
	stride := uintptr(lda) * 4
	p0 := unsafe.Pointer(a)
	p1 := unsafe.Add(p0, stride)
	p2 := unsafe.Add(p1, stride)
	p3 := unsafe.Add(p2, stride)
	p4 := unsafe.Add(p3, stride)
	p5 := unsafe.Add(p4, stride)
	b := unsafe.Pointer(panel)
	for i := uintptr(0); i < uintptr(k)*4; i += 4 {
		b0 = archsimd.LoadFloat32x16((*[16]float32)(b))
		b1 = archsimd.LoadFloat32x16((*[16]float32)(unsafe.Add(b, 64)))
		b = unsafe.Add(b, 128)

		v := zero.SetElem(0, *(*float32)(unsafe.Add(p0, i))).Broadcast1To16()
		c00, c01 = v.MulAdd(b0, c00), v.MulAdd(b1, c01)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p1, i))).Broadcast1To16()
		c10, c11 = v.MulAdd(b0, c10), v.MulAdd(b1, c11)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p2, i))).Broadcast1To16()
		c20, c21 = v.MulAdd(b0, c20), v.MulAdd(b1, c21)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p3, i))).Broadcast1To16()
		c30, c31 = v.MulAdd(b0, c30), v.MulAdd(b1, c31)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p4, i))).Broadcast1To16()
		c40, c41 = v.MulAdd(b0, c40), v.MulAdd(b1, c41)
		v = zero.SetElem(0, *(*float32)(unsafe.Add(p5, i))).Broadcast1To16()
		c50, c51 = v.MulAdd(b0, c50), v.MulAdd(b1, c51)
	}

	c00.Store(vec16(dst, 0))
	c01.Store(vec16(dst, 16))
	c10.Store(vec16(dst, ldd))
	c11.Store(vec16(dst, ldd+16))
	c20.Store(vec16(dst, 2*ldd))
	c21.Store(vec16(dst, 2*ldd+16))
	c30.Store(vec16(dst, 3*ldd))
	c31.Store(vec16(dst, 3*ldd+16))
	c40.Store(vec16(dst, 4*ldd))
	c41.Store(vec16(dst, 4*ldd+16))
	c50.Store(vec16(dst, 5*ldd))
	c51.Store(vec16(dst, 5*ldd+16))
	archsimd.ClearAVXUpperBits()
}

// vec16 is the sixteen floats at p[i:]; the caller has checked the bounds.
func vec16(p *float32, i int) *[16]float32 {
	return (*[16]float32)(unsafe.Add(unsafe.Pointer(p), i*4))
}
