package postgres

import (
	"encoding/binary"
	"math"
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
