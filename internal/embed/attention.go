package embed

import "math"

// attention is the working memory of one text's self-attention, one head at a
// time. Both of its products run on the same kernel as the weights: the keys are
// packed as panels of 32 tokens, and a head's values are 32 wide and thus already
// one panel.
type attention struct {
	kern   *kernels
	keys   []float32 // panels of headDim × 32 tokens
	values []float32 // tokens × headDim
	scores []float32 // tokens × width
	head   []float32 // tokens × headDim, one head's result
	zero   [panelCols]float32
}

// newAttention allocates memory for texts of up to n tokens.
func newAttention(kern *kernels, n int) attention {
	width, rows := roundUp(n, panelCols), n+tileRows
	return attention{
		kern:   kern,
		keys:   make([]float32, width*headDim),
		values: make([]float32, n*headDim),
		scores: make([]float32, rows*width),
		head:   make([]float32, rows*headDim),
	}
}

// apply computes the attention of a text of n tokens and writes it to dst (n × hidden).
// Each row of qkv contains queries, keys and values (n × 3·hidden, followed by at least
// tileRows-1 more rows).
func (a *attention) apply(dst, qkv []float32, n int) {
	const stride = 3 * hidden
	width := roundUp(n, panelCols)
	for h := range heads {
		queries, keys, values := qkv[h*headDim:], qkv[hidden+h*headDim:], qkv[2*hidden+h*headDim:]
		a.pack(keys, values, n)
		for row := 0; row < n; row += tileRows {
			for p := 0; p < width; p += panelCols {
				a.kern.tile(a.scores[row*width+p:], width, queries[row*stride:], stride, a.keys[p*headDim:], headDim, a.zero[:])
			}
			a.softmax(row, min(row+tileRows, n), n, width)
			a.kern.tile(a.head[row*headDim:], headDim, a.scores[row*width:], width, a.values, n, a.zero[:])
		}
		for row := range n {
			copy(dst[row*hidden+h*headDim:(row+1)*hidden], a.head[row*headDim:(row+1)*headDim])
		}
	}
}

// pack copies one head's keys and values of n tokens into panels.
func (a *attention) pack(keys, values []float32, n int) {
	const stride = 3 * hidden
	for first := 0; first < n; first += panelCols {
		packPanel(a.keys[first*headDim:], keys[first*stride:], headDim, stride, min(panelCols, n-first))
	}
	for row := range n {
		copy(a.values[row*headDim:(row+1)*headDim], values[row*stride:])
	}
}

// softmax turns rows first…last-1 of the scores into weights over n tokens. The
// columns past n contain products with stale keys; -Inf masks them.
func (a *attention) softmax(first, last, n, width int) {
	for row := first; row < last; row++ {
		scores := a.scores[row*width : (row+1)*width]
		for i := n; i < width; i++ {
			scores[i] = float32(math.Inf(-1))
		}
		a.kern.softmax(scores)
	}
}

// roundUp is the next multiple of step at or above n.
func roundUp(n, step int) int { return (n + step - 1) / step * step }
