package embed

import (
	"fmt"
	"strings"
	"testing"
)

// Throughput in texts of 64 tokens per second, on all cores.
func BenchmarkEmbedBatch(b *testing.B) {
	for _, kern := range availableKernels() {
		b.Run(kern.name, func(b *testing.B) {
			l := openTest(b, LocalOptions{}, kern)
			texts := manyTexts(64)
			for b.Loop() {
				if _, err := l.Embed(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(texts))/b.Elapsed().Seconds(), "texts/s")
		})
	}
}

// One query of 10 tokens on an idle embedder.
func BenchmarkEmbedQuery(b *testing.B) {
	for _, kern := range availableKernels() {
		b.Run(kern.name, func(b *testing.B) {
			l := openTest(b, LocalOptions{}, kern)
			for b.Loop() {
				if _, err := l.Embed(b.Context(), []string{"where do I like to sit on planes?"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A query while a batch keeps all workers busy.
func BenchmarkEmbedQueryDuringBatch(b *testing.B) {
	l := openTest(b, LocalOptions{}, availableKernels()[0])
	go func() {
		for b.Context().Err() == nil {
			_, _ = l.Embed(b.Context(), manyTexts(500))
		}
	}()
	for b.Loop() {
		if _, err := l.Embed(b.Context(), []string{"where do I like to sit on planes?"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForward(b *testing.B) {
	l := openTest(b, LocalOptions{Workers: 1}, availableKernels()[0])
	for _, n := range []int{8, 16, 32, 64, 128, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newScratch(l.workers.kern, n)
			texts := [][]int32{make([]int32, n)}
			for b.Loop() {
				l.workers.model.forward(s, texts, func() bool { return true })
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

func BenchmarkTile(b *testing.B) {
	for _, kern := range availableKernels() {
		b.Run(kern.name, func(b *testing.B) {
			dst, a := make([]float32, tileRows*hidden), make([]float32, tileRows*hidden)
			panel, bias := make([]float32, hidden*panelCols), make([]float32, panelCols)
			for b.Loop() {
				kern.tile(dst, hidden, a, hidden, panel, hidden, bias)
			}
			b.ReportMetric(float64(b.N*2*tileRows*panelCols*hidden)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func BenchmarkTokenize(b *testing.B) {
	tok := testTokenizer(b)
	for name, text := range map[string]string{
		"english": "The meeting was moved from 3:30pm to 16:00; the café is closed, so we meet at Caroline's place instead. ",
		"accents": strings.Repeat("é", 100),
		"chinese": strings.Repeat("我喜欢靠窗的座位", 12),
		"korean":  strings.Repeat("서울은 아름답다 ", 12),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.encode(text)
			}
		})
	}
}
