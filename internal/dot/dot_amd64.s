#include "textflag.h"

// func vectorSum(components *int16, code *byte, n int) int64
TEXT ·vectorSum(SB), NOSPLIT, $0-32
	MOVQ  components+0(FP), SI
	MOVQ  code+8(FP), DI
	MOVQ  n+16(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

	// The codes of many units follow each other. Processors do not prefetch across a page, so the loop prefetches
	// 2 KB ahead, which may be beyond the end.
loop:  // sixteen products at a time, added in pairs to eight sums of 32 bits; twice
	PREFETCHT0 2048(DI)
	VPMOVSXBW  (DI), Y2
	VPMOVSXBW  16(DI), Y3
	VPMADDWD   (SI), Y2, Y2
	VPMADDWD   32(SI), Y3, Y3
	VPADDD     Y2, Y0, Y0
	VPADDD     Y3, Y1, Y1
	ADDQ       $64, SI
	ADDQ       $32, DI
	SUBQ       $32, CX
	JNZ        loop

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	VZEROUPPER
	MOVLQSX      AX, AX
	MOVQ         AX, ret+24(FP)
	RET

// func floatSum(a, b *float32, n int) float32
TEXT ·floatSum(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

floats: // 32 products at a time, added to as many sums
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ        $128, SI
	ADDQ        $128, DI
	SUBQ        $32, CX
	JNZ         floats

	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VHADDPS      X0, X0, X0
	VHADDPS      X0, X0, X0
	VZEROUPPER
	MOVSS        X0, ret+24(FP)
	RET
