package embed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxHeader bounds the JSON header of a safetensors file; that of the model has 12 kB.
const maxHeader = 1 << 20

// tensorFile reads tensors from the safetensors format: eight bytes of header
// length, a JSON header that states the offsets of each tensor, then the numbers.
type tensorFile struct {
	r       io.ReaderAt
	start   int64 // of the numbers
	tensors map[string]tensorEntry
}

type tensorEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// readTensorFile reads the header.
func readTensorFile(r io.ReaderAt) (*tensorFile, error) {
	var head [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("read header length: %w", err)
	}
	size := binary.LittleEndian.Uint64(head[:])
	if size > maxHeader {
		return nil, fmt.Errorf("header of %d bytes is not one of a safetensors file", size)
	}
	header := make([]byte, size)
	if _, err := r.ReadAt(header, 8); err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(header, &raw); err != nil {
		return nil, fmt.Errorf("parse header: %w", err)
	}
	delete(raw, "__metadata__")
	f := &tensorFile{r: r, start: 8 + int64(size), tensors: make(map[string]tensorEntry, len(raw))}
	for name, entry := range raw {
		var e tensorEntry
		if err := json.Unmarshal(entry, &e); err != nil {
			return nil, fmt.Errorf("parse header entry %s: %w", name, err)
		}
		f.tensors[name] = e
	}
	return f, nil
}

// find returns the offset and count of the numbers of a tensor of the given shape.
func (f *tensorFile) find(name string, shape ...int) (at int64, count int, err error) {
	e, ok := f.tensors[name]
	if !ok {
		return 0, 0, fmt.Errorf("tensor %s is missing", name)
	}
	if e.DType != "F32" || !slices.Equal(e.Shape, shape) {
		return 0, 0, fmt.Errorf("tensor %s is %s %v, want F32 %v", name, e.DType, e.Shape, shape)
	}
	count = 1
	for _, n := range shape {
		count *= n
	}
	if e.Offsets[0] < 0 || e.Offsets[1]-e.Offsets[0] != int64(count)*4 {
		return 0, 0, fmt.Errorf("tensor %s has offsets %v, want %d bytes", name, e.Offsets, count*4)
	}
	return f.start + e.Offsets[0], count, nil
}

// read returns the float32 numbers of a tensor of the given shape.
func (f *tensorFile) read(name string, shape ...int) ([]float32, error) {
	at, count, err := f.find(name, shape...)
	if err != nil {
		return nil, err
	}
	values := make([]float32, count)
	// Read in pieces, so that no tensor is in memory twice.
	raw := make([]byte, min(count*4, 64<<10))
	for rest := values; len(rest) > 0; {
		raw = raw[:min(len(raw), len(rest)*4)]
		if err := readFloats(f.r, rest[:len(raw)/4], raw, at); err != nil {
			return nil, fmt.Errorf("read tensor %s: %w", name, err)
		}
		rest, at = rest[len(raw)/4:], at+int64(len(raw))
	}
	return values, nil
}

// table is a tensor whose rows are read on demand.
type table struct {
	r     io.ReaderAt
	at    int64 // where row 0 begins
	width int   // numbers in a row
}

// table returns a tensor of the given size without reading it.
func (f *tensorFile) table(name string, rows, width int) (table, error) {
	at, _, err := f.find(name, rows, width)
	if err != nil {
		return table{}, err
	}
	last := make([]float32, width)
	if err := readFloats(f.r, last, make([]byte, 4*width), at+4*int64(rows-1)*int64(width)); err != nil {
		return table{}, fmt.Errorf("read tensor %s: %w", name, err)
	}
	return table{r: f.r, at: at, width: width}, nil
}

// row reads row i into dst; raw is working memory of 4·width bytes.
func (t table) row(dst []float32, raw []byte, i int) error {
	return readFloats(t.r, dst[:t.width], raw, t.at+4*int64(i)*int64(t.width))
}

// readFloats reads len(dst) numbers from an offset, using raw as a buffer.
func readFloats(r io.ReaderAt, dst []float32, raw []byte, at int64) error {
	raw = raw[:4*len(dst)]
	if _, err := r.ReadAt(raw, at); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[i*4:]))
	}
	return nil
}
