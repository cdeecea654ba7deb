package postgres

import (
	"encoding/binary"
	"math"

	"github.com/mnemo-dev/mnemo/internal/dot"
)

// Embeddings are stored in half precision (IEEE 754 binary16, little endian), which
// halves the bytes to read. For unit vectors the cosine error is below 0.001.

// encodeHalf encodes a vector for storage; nil stays nil.
func encodeHalf(vector []float32) []byte {
	if vector == nil {
		return nil
	}
	out := make([]byte, 2*len(vector))
	for i, v := range vector {
		binary.LittleEndian.PutUint16(out[2*i:], halfFromFloat(v))
	}
	return out
}

// decodeHalf decodes a stored vector; nil stays nil.
func decodeHalf(stored []byte) []float32 {
	if stored == nil {
		return nil
	}
	out := make([]float32, len(stored)/2)
	for i := range out {
		out[i] = floatFromHalf(binary.LittleEndian.Uint16(stored[2*i:]))
	}
	return out
}

// rebasedVector is a vector multiplied by rebias, so that dotHalf need not multiply stored
// ones. Unit vectors do not overflow.
type rebasedVector []float32

func rebased(vector []float32) rebasedVector {
	out := make(rebasedVector, len(vector))
	for i, v := range vector {
		out[i] = v * rebias
	}
	return out
}

// dotHalf returns the dot product with a stored vector, over the shorter of both lengths.
func (r rebasedVector) dotHalf(stored []byte) float64 {
	n := min(len(r), len(stored)/2)
	r, stored = r[:n], stored[:2*n]
	// Four independent sums avoid a dependency between additions.
	var a, b, c, d float32
	i := 0
	for ; i+4 <= n; i += 4 {
		bits := binary.LittleEndian.Uint64(stored[2*i:])
		v := r[i : i+4 : i+4]
		a += v[0] * biasedFromHalf(uint16(bits))
		b += v[1] * biasedFromHalf(uint16(bits>>16))
		c += v[2] * biasedFromHalf(uint16(bits>>32))
		d += v[3] * biasedFromHalf(uint16(bits>>48))
	}
	for ; i < n; i++ {
		a += r[i] * biasedFromHalf(binary.LittleEndian.Uint16(stored[2*i:]))
	}
	return float64(a+b) + float64(c+d)
}

const (
	halfInfinity = 0x7c00
	// rebias moves an exponent from half to single precision: 2^(127-15).
	rebias = 0x1p112
)

// floatFromHalf is exact. Infinities and NaN, which embeddings do not contain, become
// large finite numbers.
func floatFromHalf(h uint16) float32 {
	// The multiplication rebiases the exponent and normalizes subnormals.
	return biasedFromHalf(h) * rebias
}

// biasedFromHalf moves the bits of a half to their places in a float: the result is floatFromHalf(h) ÷ rebias.
func biasedFromHalf(h uint16) float32 {
	return math.Float32frombits(uint32(int32(int16(h))<<13) & 0x8fffffff)
}

// halfFromFloat rounds to the nearest half, ties to even. Values out of range become
// infinities.
func halfFromFloat(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000: // NaN
		return sign | halfInfinity | 0x200
	case bits >= 0x477ff000: // 65520 and above rounds beyond the largest, 65504
		return sign | halfInfinity
	case bits < 0x38800000: // below 2^-14, the smallest normal half
		// Adding a half makes the addition round at a subnormal half's last bit.
		v := math.Float32frombits(bits) + 0.5
		return sign | uint16(math.Float32bits(v)-math.Float32bits(0.5))
	}
	bits += 0xfff + bits>>13&1 // to nearest, to even on a tie
	return sign | uint16((bits-0x38000000)>>13)
}

// Cached vectors have a byte for each component, which is half the size again: the component as a share of the largest one,
// after that one divided by 127, in single precision. For unit vectors of 384 dimensions the error of the cosine is typically below 0.001.

// appendCode appends the code of a stored vector.
func appendCode(out, stored []byte) []byte {
	most := uint16(0x1c00) // 1/256, the least largest component of a unit vector of 65,536 dimensions
	for i := 0; i+2 <= len(stored); i += 2 {
		most = max(most, binary.LittleEndian.Uint16(stored[i:])&^0x8000) // halves without their sign are ordered like integers
	}
	scale := floatFromHalf(most) / math.MaxInt8
	out = binary.LittleEndian.AppendUint32(out, math.Float32bits(scale))
	perStep := rebias / scale
	for i := 0; i+2 <= len(stored); i += 2 {
		// The conversion rounds down positive numbers.
		const up = 1<<7 + 0.5
		out = append(out, byte(int32(biasedFromHalf(binary.LittleEndian.Uint16(stored[i:]))*perStep+up)-1<<7))
	}
	return out
}

// decodeCode decodes a coded vector; nil for an empty code.
func decodeCode(code []byte) []float32 {
	if len(code) == 0 {
		return nil
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(code))
	code = code[4:]
	out := make([]float32, len(code))
	for i, c := range code {
		out[i] = float32(int8(c)) * scale
	}
	return out
}

// codedQuery is a vector to multiply with codes: components as shares of the largest one.
type codedQuery struct {
	components dot.Query
	scale      float64
}

func codeQuery(vector []float32) codedQuery {
	most := math.SmallestNonzeroFloat32
	for _, v := range vector {
		most = max(most, math.Abs(float64(v)))
	}
	scale, components := most/dot.MaxComponent, make([]int16, len(vector))
	for i, v := range vector {
		components[i] = int16(math.Round(float64(v) / scale))
	}
	return codedQuery{dot.NewQuery(components), scale}
}

// dot returns the dot product with a coded vector of the same length.
func (q codedQuery) dot(code []byte) float64 {
	scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(code)))
	return float64(q.components.Dot(code[4:])) * scale * q.scale
}
