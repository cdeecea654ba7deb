package embed

import (
	"fmt"
	"math"
)

// scratch is the working memory of one forward pass of up to n tokens, all rows
// contiguous. It is reused, so a pass allocates only its results.
type scratch struct {
	kern    *kernels
	x       []float32 // n × hidden, the residual stream
	qkv     []float32 // n × 3·hidden
	context []float32 // n × hidden, the output of attention
	sum     []float32 // n × hidden, a block's output before it is added to x
	inner   []float32 // n × inner
	word    []byte    // a row of the word embeddings, as stored in the file
	attn    attention
}

// newScratch allocates memory for passes of up to n tokens in total.
func newScratch(kern *kernels, n int) *scratch {
	rows := n + tileRows // kernels write whole tiles
	return &scratch{
		kern:    kern,
		x:       make([]float32, rows*hidden),
		qkv:     make([]float32, rows*3*hidden),
		context: make([]float32, rows*hidden),
		sum:     make([]float32, rows*hidden),
		inner:   make([]float32, rows*inner),
		word:    make([]byte, 4*hidden),
		attn:    newAttention(kern, min(n, window)),
	}
}

// forward computes one normalised vector per text. The tokens of all texts are
// concatenated without padding: matrix products process all rows alike, and only attention
// and pooling process each text separately. between is called before each layer; if it
// returns false, forward stops and returns nil. An error comes from reading the model's
// file.
func (m *model) forward(s *scratch, texts [][]int32, between func() bool) ([][]float32, error) {
	n, err := m.lookUp(s, texts)
	if err != nil {
		return nil, err
	}
	for i := range m.layers {
		if !between() {
			return nil, nil
		}
		m.layers[i].apply(s, texts, n)
	}
	vectors := make([][]float32, len(texts))
	row := 0
	for i, ids := range texts {
		vectors[i] = pool(s.x[row*hidden : (row+len(ids))*hidden])
		row += len(ids)
	}
	return vectors, nil
}

// lookUp fills s.x with the tokens' embeddings and returns their number.
func (m *model) lookUp(s *scratch, texts [][]int32) (int, error) {
	row := 0
	for _, ids := range texts {
		for position, id := range ids {
			x := s.x[row*hidden : (row+1)*hidden]
			if err := m.words.row(x, s.word, int(id)); err != nil {
				return 0, fmt.Errorf("read word %d of the model: %w", id, err)
			}
			s.kern.addNorm(x, m.positions[position*hidden:(position+1)*hidden], m.norm.gain, m.norm.bias)
			row++
		}
	}
	return row, nil
}

// apply runs one transformer block over n tokens in s.x.
func (l *layer) apply(s *scratch, texts [][]int32, n int) {
	l.qkv.multiply(s.kern, s.qkv, s.x, n)
	row := 0
	for _, ids := range texts {
		s.attn.apply(s.context[row*hidden:], s.qkv[row*3*hidden:], len(ids))
		row += len(ids)
	}
	l.output.multiply(s.kern, s.sum, s.context, n)
	l.outputNorm.add(s, n)

	l.up.multiply(s.kern, s.inner, s.x, n)
	s.kern.gelu(s.inner[:n*inner])
	l.down.multiply(s.kern, s.sum, s.inner, n)
	l.downNorm.add(s, n)
}

// add computes x = layerNorm(x + sum) for n tokens.
func (w layerNorm) add(s *scratch, n int) {
	for row := range n {
		from, to := row*hidden, (row+1)*hidden
		s.kern.addNorm(s.x[from:to], s.sum[from:to], w.gain, w.bias)
	}
}

// pool is the mean of the rows of x, scaled to length 1.
func pool(x []float32) []float32 {
	vector := make([]float32, hidden)
	for ; len(x) > 0; x = x[hidden:] {
		for i, v := range x[:hidden] {
			vector[i] += v
		}
	}
	normalise(vector)
	return vector
}

// normalise scales v to length 1. It returns false and does not change v if v is
// zero or not finite.
func normalise(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return false
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return true
}
