//go:build !goexperiment.simd || !amd64

package embed

// availableKernels lists the kernels this machine supports, fastest first.
func availableKernels() []*kernels { return []*kernels{plainKernels} }
