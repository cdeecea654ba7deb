package embed

import "math"

// kernels are the inner loops of the forward pass in one instruction set.
type kernels struct {
	name string
	// tile computes 4 rows × 32 columns of dst = a·panel + bias, where a has k
	// columns. ldd and lda are the strides of dst and a, in floats.
	tile func(dst []float32, ldd int, a []float32, lda int, panel []float32, k int, bias []float32)
	// gelu applies x·Φ(x) in place; len(x) is a multiple of 8.
	gelu func(x []float32)
	// softmax replaces x by exp(x)/Σexp(x); len(x) is a multiple of 8.
	softmax func(x []float32)
	// addNorm computes x = layerNorm(x+add)·gain + bias; lengths are multiples of 8.
	addNorm func(x, add, gain, bias []float32)
}

// layerNormEpsilon keeps the division in layer normalisation finite (the model's
// layer_norm_eps).
const layerNormEpsilon = 1e-12

// plainKernels works on every machine and is the reference in tests.
var plainKernels = &kernels{name: "plain", tile: plainTile, gelu: plainGelu, softmax: plainSoftmax, addNorm: plainAddNorm}

// plainTile keeps 4 rows × 2 columns in scalar registers at a time, which uses all of
// them.
func plainTile(dst []float32, ldd int, a []float32, lda int, panel []float32, k int, bias []float32) {
	a0, a1, a2, a3 := a[:k], a[lda:lda+k], a[2*lda:2*lda+k], a[3*lda:3*lda+k]
	for c := 0; c < panelCols; c += 2 {
		x, y := bias[c], bias[c+1]
		x0, x1, x2, x3, y0, y1, y2, y3 := x, x, x, x, y, y, y, y
		for i := range k {
			b := panel[i*panelCols+c : i*panelCols+c+2 : i*panelCols+c+2]
			x, y = b[0], b[1]
			x0, y0 = x0+a0[i]*x, y0+a0[i]*y
			x1, y1 = x1+a1[i]*x, y1+a1[i]*y
			x2, y2 = x2+a2[i]*x, y2+a2[i]*y
			x3, y3 = x3+a3[i]*x, y3+a3[i]*y
		}
		dst[c], dst[c+1] = x0, y0
		dst[ldd+c], dst[ldd+c+1] = x1, y1
		dst[2*ldd+c], dst[2*ldd+c+1] = x2, y2
		dst[3*ldd+c], dst[3*ldd+c+1] = x3, y3
	}
}

func plainGelu(x []float32) {
	for i, v := range x {
		x[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)*(1/math.Sqrt2))))
	}
}

func plainSoftmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(v - top))
		x[i] = float32(e)
		sum += e
	}
	scale := float32(1 / sum)
	for i := range x {
		x[i] *= scale
	}
}

func plainAddNorm(x, add, gain, bias []float32) {
	var sum, squares float64
	for i := range x {
		x[i] += add[i]
		sum += float64(x[i])
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		squares += d * d
	}
	scale := 1 / math.Sqrt(squares/float64(len(x))+layerNormEpsilon)
	for i, v := range x {
		x[i] = float32((float64(v)-mean)*scale)*gain[i] + bias[i]
	}
}
