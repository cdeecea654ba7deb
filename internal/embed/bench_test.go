package embed

import (
	"strings"
	"testing"
)

// Throughput in texts of 64 tokens per second, on all cores.
func BenchmarkEmbedBatch(b *testing.B) {
	l := openTest(b, LocalConfig{})
	texts := manyTexts(64)
	for b.Loop() {
		if _, err := l.Embed(b.Context(), texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(texts))/b.Elapsed().Seconds(), "texts/s")
}

// One query of 12 tokens on an idle embedder.
func BenchmarkEmbedQuery(b *testing.B) {
	l := openTest(b, LocalConfig{})
	for b.Loop() {
		if _, err := l.EmbedQuery(b.Context(), "where do I like to sit on planes?"); err != nil {
			b.Fatal(err)
		}
	}
}

// A query while a batch keeps all workers busy.
func BenchmarkEmbedQueryDuringBatch(b *testing.B) {
	l := openTest(b, LocalConfig{})
	go func() {
		for b.Context().Err() == nil {
			_, _ = l.Embed(b.Context(), manyTexts(500))
		}
	}()
	for b.Loop() {
		if _, err := l.EmbedQuery(b.Context(), "where do I like to sit on planes?"); err != nil {
			b.Fatal(err)
		}
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
