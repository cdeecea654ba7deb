package retrievalbench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// BenchmarkSearch searches the conversations of users with few and many messages, as the API does.
func BenchmarkSearch(b *testing.B) {
	db := postgrestest.New(b)
	at := testkit.Milvus(b)
	index, err := milvus.Open(b.Context(), milvus.Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: dimensions})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = index.Close() })
	embedder, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(b), Library: testkit.ONNXRuntime(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = embedder.Close() })
	engine := retrieve.New(retrieve.Config{Searcher: db, Index: index, Embedders: retrieve.Embedders{1: embedder}})
	service := chat.NewService(chat.Config{Store: db.Conversations(), Passages: db, Searcher: engine, Index: index, Embedders: retrieve.Embedders{1: embedder},
		CountTokens: func(text string, _ int) int { return len(text) }})
	for _, n := range []int{200, 2000, 20000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			who := newAccount(b, db, index, n, func(int) string { return sentence(r, 10+r.IntN(30)) })
			for _, limit := range []int{10, chat.DefaultResults} {
				b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) { benchmarkSearch(b, service, who, r, limit) })
			}
		})
	}
}

func benchmarkSearch(b *testing.B, service *chat.Service, who tenant.Identity, r *rand.Rand, limit int) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		in := chat.SearchInput{Query: sentence(r, 8), Limit: limit, Around: chat.DefaultAround, MinScore: new(float64)} // vectors are random: nothing is relevant
		began := time.Now()
		found, _, err := service.Search(b.Context(), who, in)
		took = append(took, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		if len(found) != limit {
			b.Fatalf("%d results, want %d", len(found), limit)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
}
