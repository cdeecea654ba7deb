package bench

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/internal/tokens"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// BenchmarkMemories calls the memory service in this process, so that its profiles show one operation. The server runs
// the jobs. Deletions need many memories: run them apart, with -benchtime 3x.
func BenchmarkMemories(b *testing.B) {
	server := installation.ServeLocal(b, "u200", "u2000")
	dropChecks(b, server)
	service, identify := openService(b, server)
	w := newWriter(1)
	for _, n := range []int{200, 2000} {
		user := fmt.Sprint("u", n)
		b.Run(fmt.Sprint("memories=", n), func(b *testing.B) {
			(&bench{TB: b, server: server, http: newHTTP(), writer: newWriter(2)}).load(user, n)
			m := memories{service, identify(user), w}
			b.Run("search", measured(m.search))
			b.Run("list", measured(m.list))
			b.Run("create", measured(m.create))
			b.Run("delete", m.delete)
		})
	}
}

// memories are those of a user.
type memories struct {
	service *memory.Service
	who     tenant.Identity
	writer  writer
}

// measured adds the processor time of this process to a benchmark.
func measured(run func(b *testing.B)) func(b *testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		before := processorTime(b)
		run(b)
		b.ReportMetric(toMS(processorTime(b)-before)/float64(b.N), "cpu-ms/op")
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m memories) search(b *testing.B) {
	b.Helper()
	var took series
	for b.Loop() {
		began := time.Now()
		if _, err := m.service.List(b.Context(), m.who, memory.ListInput{Query: m.writer.text(8), Count: results}); err != nil {
			b.Fatal(err)
		}
		took.add(time.Since(began))
	}
	b.ReportMetric(toMS(took.quantile(0.5)), "p50-ms")
	b.ReportMetric(toMS(took.quantile(0.95)), "p95-ms")
}

func (m memories) list(b *testing.B) {
	b.Helper()
	for b.Loop() {
		if _, err := m.service.List(b.Context(), m.who, memory.ListInput{Count: page}); err != nil {
			b.Fatal(err)
		}
	}
}

func (m memories) create(b *testing.B) {
	b.Helper()
	for b.Loop() {
		if _, err := m.service.Create(b.Context(), m.who, memory.CreateInput{Text: m.writer.memory()}); err != nil {
			b.Fatal(err)
		}
	}
}

// delete deletes the 100 newest memories at once.
func (m memories) delete(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		ids := make([]string, 100)
		for i := range ids {
			created, err := m.service.Create(b.Context(), m.who, memory.CreateInput{Text: m.writer.memory()})
			if err != nil {
				b.Fatal(err)
			}
			ids[i] = created.ID
		}
		b.StartTimer()
		if done, err := m.service.DeleteMany(b.Context(), m.who, ids); err != nil || done.Cause != nil {
			b.Fatal(err, done.Cause)
		}
	}
}

// openService returns the memory service on the stores of a server, and identifies its users.
func openService(b *testing.B, server *installation.Server) (*memory.Service, func(user string) tenant.Identity) {
	b.Helper()
	model, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(b), Library: testkit.ONNXRuntime(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = model.Close() })
	identify := func(user string) tenant.Identity {
		who, err := server.DB.Identify(b.Context(), tenant.HashSecret(server.Tokens[user]))
		if err != nil {
			b.Fatal(err)
		}
		return who
	}
	generation := identify("u200").Generation
	embedders := retrieve.Embedders{generation: model}
	engine := retrieve.New(retrieve.Config{Searcher: server.DB, Index: server.Index, Embedders: embedders})
	return memory.NewService(memory.Config{Store: server.DB.Memories(), Buckets: server.DB.Memories(), Searcher: engine, Index: server.Index, Embedders: embedders,
		CountTokens: tokens.Count}), identify
}
