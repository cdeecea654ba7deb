package postgres

import "math"

// integer converts a number for a column or parameter of type integer. A number that is
// out of range becomes the nearest one: an offset beyond the end of a table remains one.
func integer[N ~int | ~int64](n N) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}
