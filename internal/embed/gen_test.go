package embed

import "testing"

func Benchmark_g4x1(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g4x1(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*4*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g4x2(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g4x2(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*4*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g4x4(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g4x4(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*4*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g5x1(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g5x1(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*5*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g5x4(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g5x4(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*5*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g6x2(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g6x2(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*6*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g6x4(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g6x4(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*6*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
func Benchmark_g6x8(b *testing.B) {
	a := make([]float32, 6*384)
	p := make([]float32, 32*384)
	d := make([]float32, 6*384)
	bias := make([]float32, 32)
	for b.Loop() {
		g6x8(&d[0], 384, &a[0], 384, &p[0], 384, &bias[0])
	}
	b.ReportMetric(float64(b.N)*384*6*2*16*2/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
