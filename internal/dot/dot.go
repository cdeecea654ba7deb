package dot

import "encoding/binary"

// MaxComponent is the largest absolute value of a component of a Query.
const MaxComponent = 1<<13 - 1

const (
	// maxSummed is a number of products whose sum is always less than 2^31.
	maxSummed = 1 << 10
	// codeBias makes the components of a code positive.
	codeBias   = 1 << 7
	codeBiases = 0x8080808080808080
	// packed is the number of components in four numbers.
	packed = 8
)

// Query is a vector to multiply with codes.
type Query struct {
	components []int16 // for vectorSum
	// numbers has eight consecutive components in four numbers, for processors without vectorSum: the product of a number and two
	// components of a code, 32 bits apart, has the sum of both products in its upper half.
	numbers [][packed / 2]int64
	sums    []int64 // of the components before each group of eight, and of all of them
}

// NewQuery returns a query with components from -MaxComponent to MaxComponent, which it keeps.
func NewQuery(components []int16) Query {
	q := Query{components: components}
	if vectorWidth > 0 {
		return q
	}
	q.numbers, q.sums = make([][packed / 2]int64, len(components)/packed), make([]int64, len(components)/packed+1)
	for i := range q.numbers {
		q.sums[i+1] = q.sums[i]
		for j, c := range components[i*packed : (i+1)*packed] {
			x := int64(c)
			q.sums[i+1] += x
			if j < packed/2 {
				x <<= 32 // multiplied with the lower component
			}
			q.numbers[i][j%(packed/2)] += x
		}
	}
	return q
}

// Dot returns the exact dot product with a code, which consists of signed bytes, over the shorter of both lengths.
func (q Query) Dot(code []byte) int64 {
	code = code[:min(len(code), len(q.components))]
	sum, done := int64(0), 0
	if vectorWidth > 0 {
		for whole := len(code) / vectorWidth * vectorWidth; done < whole; {
			n := min(whole-done, maxSummed)
			sum += vectorSum(&q.components[done : done+n][0], &code[done], n)
			done += n
		}
	} else {
		whole := len(code) / packed
		sum -= codeBias * q.sums[whole]
		for done < whole*packed {
			n := min(whole*packed-done, maxSummed)
			sum += biasedSum(q.numbers[done/packed:(done+n)/packed], code[done:done+n])
			done += n
		}
	}
	for i, c := range code[done:] {
		sum += int64(q.components[done+i]) * int64(int8(c)) //nolint:gosec // a code is signed
	}
	return sum
}

// biasedSum returns the sum of the products of the numbers of a Query and up to maxSummed components of a code, to each of which codeBias is added.
func biasedSum(numbers [][packed / 2]int64, code []byte) int64 {
	const two = 0x000000ff000000ff
	// Four independent sums avoid a dependency between additions.
	var a, b, c, d int64
	for i := range numbers {
		x, y := &numbers[i], binary.LittleEndian.Uint64(code[i*packed:])^codeBiases
		a += x[0] * int64(y&two)
		b += x[1] * int64(y>>8&two)
		c += x[2] * int64(y>>16&two)
		d += x[3] * int64(y>>24&two)
	}
	return upper(a) + upper(b) + upper(c) + upper(d)
}

// upper returns the upper half of a sum of products, of which the lower half is signed, too.
func upper(sum int64) int64 { return (sum - int64(int32(sum))) >> 32 } //nolint:gosec // the lower half
