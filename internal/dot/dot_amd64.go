package dot

import "golang.org/x/sys/cpu"

// vectorWidth is the number of components of which vectorSum and floatSum need a multiple, or 0 if the processor cannot execute them.
var vectorWidth = func() int {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		return 32
	}
	return 0
}()

// vectorSum returns the sum of n products, at most maxSummed. n is a positive multiple of vectorWidth.
//
//go:noescape
func vectorSum(components *int16, code *byte, n int) int64

// floatSum returns the sum of n products. n is a positive multiple of vectorWidth.
//
//go:noescape
func floatSum(a, b *float32, n int) float32
