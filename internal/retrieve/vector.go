package retrieve

// Dot returns the dot product of two vectors over the shorter of both lengths: the cosine of L2-normalized vectors. Its
// relative error is that of float32.
func Dot(a, b []float32) float64 {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	// Four independent sums avoid a dependency between additions.
	var s0, s1, s2, s3 float32
	for ; i+4 <= n; i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < n; i++ {
		s0 += a[i] * b[i]
	}
	return float64(s0+s1) + float64(s2+s3)
}
