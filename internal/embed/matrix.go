package embed

const (
	// panelCols is the width of a panel: two AVX-512 vectors. The widths of
	// all matrices of the model and of an attention head are multiples of it.
	panelCols = 32
	// tileRows is how many rows one kernel call computes; see tile4x32 for why.
	tileRows = 4
)

// matrix is a weight matrix packed for the kernels. Panel p holds columns
// 32p…32p+31, row after row, so that a kernel reads it sequentially: one
// contiguous stream instead of rows that are a page apart.
type matrix struct {
	rows, cols int       // input and output width
	panels     []float32 // cols/32 panels of rows×32
	bias       []float32 // cols
}

// packMatrix packs linear layers' weights side by side into one matrix. Each
// weight is in PyTorch's layout, [output][input] row by row, with rows inputs.
func packMatrix(rows int, layers ...linear) *matrix {
	m := &matrix{rows: rows}
	for _, l := range layers {
		for first := 0; first < len(l.bias); first += panelCols {
			m.panels = append(m.panels, make([]float32, rows*panelCols)...)
			packPanel(m.panels[len(m.panels)-rows*panelCols:], l.weight[first*rows:], rows, rows, panelCols)
		}
		m.bias = append(m.bias, l.bias...)
	}
	m.cols = len(m.bias)
	return m
}

// packPanel transposes n rows of src, each width long and stride apart, into the
// first n columns of a panel of width rows.
func packPanel(panel, src []float32, width, stride, n int) {
	for c := range n {
		row := src[c*stride : c*stride+width]
		for r, v := range row {
			panel[r*panelCols+c] = v
		}
	}
}

// multiply computes dst = src·m + bias for n rows. src has rows of m.rows, dst of
// m.cols; both must have room for n rounded up to tileRows, and the rows past n
// are undefined. The outer loop is over panels: a panel stays in the second-level cache
// while all rows are processed, and the weights, which are larger than any cache, are read
// once.
func (m *matrix) multiply(kern *kernels, dst, src []float32, n int) {
	size := m.rows * panelCols
	for p := range m.cols / panelCols {
		panel := m.panels[p*size : (p+1)*size]
		col := p * panelCols
		bias := m.bias[col : col+panelCols]
		for r := 0; r < n; r += tileRows {
			kern.tile(dst[r*m.cols+col:], m.cols, src[r*m.rows:], m.rows, panel, m.rows, bias)
		}
	}
}
