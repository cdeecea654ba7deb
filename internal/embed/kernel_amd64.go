//go:build goexperiment.simd && amd64

package embed

import "simd/archsimd"

var (
	avx512Kernels = &kernels{name: "avx512", tile: tile4x32, gelu: geluAVX2, softmax: softmaxAVX2, addNorm: addNormAVX2}
	avx2Kernels   = &kernels{name: "avx2", tile: tile4x16, gelu: geluAVX2, softmax: softmaxAVX2, addNorm: addNormAVX2}
)

// availableKernels lists the kernels this machine supports, fastest first. Only the matrix
// product has an AVX-512 implementation: the rest takes a twentieth of the time.
func availableKernels() []*kernels {
	var list []*kernels
	avx2 := archsimd.X86.AVX2() && archsimd.X86.FMA()
	if avx2 && archsimd.X86.AVX512() {
		list = append(list, avx512Kernels)
	}
	if avx2 {
		list = append(list, avx2Kernels)
	}
	return append(list, plainKernels)
}
