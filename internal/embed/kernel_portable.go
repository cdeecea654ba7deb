//go:build !goexperiment.simd || !amd64

package embed

// availableKernels lists what this machine can run, best first.
func availableKernels() []*kernels { return []*kernels{plainKernels} }
