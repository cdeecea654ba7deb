package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// percentiles reports the median and the 95th percentile, in milliseconds.
func percentiles(b *testing.B, do func(i int)) {
	b.Helper()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		do(i)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	for _, p := range []int{50, 95} {
		b.ReportMetric(float64(took[len(took)*p/100])/1e6, fmt.Sprintf("p%d-ms", p))
	}
}

func BenchmarkCreate(b *testing.B) {
	s := setup(b, nil)
	v := randomUnit(rand.New(rand.NewPCG(1, 1)))
	percentiles(b, func(i int) {
		s.remember(b, s.users[0], fmt.Sprintf("2025-05-09 The %dth thing I want to remember about gardening in May", i),
			func(string) []float32 { return v })
	})
}

// BenchmarkCreateConcurrently creates memories of eight users at the same time, in one tenant and in eight.
func BenchmarkCreateConcurrently(b *testing.B) {
	const writers = 8
	for _, tenants := range []int{1, writers} {
		b.Run(fmt.Sprint("tenants=", tenants), func(b *testing.B) {
			s := setup(b, nil)
			scopes := s.scopes(b, tenants, writers/tenants)
			v := randomUnit(rand.New(rand.NewPCG(1, 1)))
			var next atomic.Int64
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, scope := range scopes {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						s.remember(b, scope, fmt.Sprintf("2025-05-09 The %dth thing I want to remember about gardening in May", i),
							func(string) []float32 { return v })
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// scopes creates tenants with users.
func (b *testBundle) scopes(t testing.TB, tenants, users int) (out []tenant.Scope) {
	t.Helper()
	for range tenants {
		spec := tenanttest.NewSpec()
		spec.Quota = b.specs[0].Quota
		spec.Users = nil
		for i := range users {
			spec.Users = append(spec.Users, tenant.UserSpec{Name: fmt.Sprint("user", i)})
		}
		got, err := b.Apply(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range got.Users {
			out = append(out, tenant.Scope{Tenant: got.ID, User: u.ID})
		}
	}
	return out
}

// BenchmarkTenants measures what reads a row of every tenant: the metrics, the poll of the operator, the platform overview and
// the placement of a new tenant; without queued jobs, and with one of each tenant. The end of a job must not.
func BenchmarkTenants(b *testing.B) {
	for _, tenants := range []int{1_000, 10_000, 100_000} {
		s := setup(b, nil)
		s.fillTenants(b, tenants)
		s.readTenants(b, fmt.Sprint("tenants=", tenants))
		if _, err := s.owner.Exec(b.Context(), `insert into river_job (state, queue, kind, args, max_attempts, priority)
			select 'available', 'backlog', 'index.sync', jsonb_build_object('tenant', id), 10, 2 from tenants`); err != nil {
			b.Fatal(err)
		}
		s.readTenants(b, fmt.Sprint("jobs=", tenants))
	}
}

func (b *testBundle) readTenants(t *testing.B, name string) {
	t.Helper()
	poll := b.ChangeReader()
	for operation, do := range map[string]func() error{
		"Stats":       func() error { _, err := b.Stats(t.Context(), 100); return err },
		"Poll":        func() error { _, err := poll.Poll(t.Context()); return err },
		"Overview":    func() error { _, err := b.Overview(t.Context(), tenant.OverviewFilter{Limit: 50}); return err },
		"PromoteJobs": func() error { return b.PromoteJobs(t.Context(), queue.Backlog, 1, 0) },
		"EnsurePlacement": func() error {
			spec := tenanttest.NewSpec()
			if _, err := b.Apply(t.Context(), spec); err != nil {
				return err
			}
			_, err := b.EnsurePlacement(t.Context(), spec.ID)
			return err
		},
	} {
		t.Run(name+"/"+operation, func(t *testing.B) {
			percentiles(t, func(int) {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// fillTenants adds tenants with a user and a placement each, without one transaction each.
func (b *testBundle) fillTenants(t testing.TB, count int) {
	t.Helper()
	if _, err := b.EnsurePlacement(t.Context(), b.specs[0].ID); err != nil { // in the generation of the others
		t.Fatal(err)
	}
	for _, statement := range []string{
		fmt.Sprintf("create table made as select gen_random_uuid() as id, n from generate_series(1, %d) n", count),
		`insert into tenants (id, resource, cluster, namespace, namespace_uid, name) select id, id, 'cluster-1', 'many', 'uid-many', 't' || n from made`,
		`insert into usage (tenant_id) select id from made`,
		`insert into quotas (tenant_id, memories, conversations, storage, users, requests_per_minute, page_tokens, user_memories, user_conversations)
			select id, 100, 100, 1000, 10, 100, 1000, 100, 100 from made`,
		`insert into users (tenant_id, name) select id, 'alice' from made`,
		`insert into placements (tenant_id, generation, collection, partition)
			select m.id, p.generation, p.generation || '_' || 1 + n / 256, 't' || n from made m, placements p`,
		`analyze tenants, usage, quotas, users, placements`,
	} {
		if _, err := b.owner.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%.60s: %v", statement, err)
		}
	}
}

// BenchmarkList reads the 1,000 oldest of 2,000 memories.
func BenchmarkList(b *testing.B) {
	s := setup(b, nil)
	for i := range 2000 {
		s.remember(b, s.users[0], fmt.Sprintf("2025-05-09 The %dth thing I want to remember about gardening in May", i), nil)
	}
	b.ReportAllocs()
	percentiles(b, func(int) {
		if _, _, err := s.Memories().List(b.Context(), s.users[0], memory.Filter{Limit: 1000}); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkDelete deletes 1,000 of 2,000 memories at once, without statistics, as after an import.
func BenchmarkDelete(b *testing.B) {
	s := setup(b, nil)
	disableAutovacuum(b, s)
	scope := s.users[0]
	b.ReportAllocs()
	for n := 0; b.Loop(); {
		b.StopTimer()
		for have := len(s.memoryIDs(b, scope, 2000)); have < 2000; have++ {
			n++
			s.remember(b, scope, fmt.Sprintf("2025-05-09 The %dth thing I want to remember about gardening in May", n), nil)
		}
		ids := s.memoryIDs(b, scope, 1000)
		b.StartTimer()
		if _, err := s.Memories().Delete(b.Context(), scope, ids); err != nil {
			b.Fatal(err)
		}
	}
}

// memoryIDs returns the ids of the oldest memories of a user.
func (b *testBundle) memoryIDs(t testing.TB, scope tenant.Scope, limit int) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), "select id::text from memories where tenant_id = $1 and user_id = $2 order by seq limit $3",
		string(scope.Tenant), int64(scope.User), limit)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func BenchmarkUpsert(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := setup(b, nil)
			percentiles(b, func(i int) { s.upsert(b, s.users[0], newConversation(fmt.Sprint(i), 0, n)) })
		})
	}
}

func BenchmarkLexical(b *testing.B) {
	for _, n := range []int{2000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := setup(b, nil)
			s.insertUnits(b, s.users[0], s.remember(b, s.users[0], "start", nil), n, "now()")
			r := rand.New(rand.NewPCG(1, 1))
			percentiles(b, func(int) {
				question := ""
				for range 6 {
					x := r.Float64()
					question += fmt.Sprintf("lorem%d ", int(4000*x*x*x*x))
				}
				q := retrieve.Request{Kind: retrieve.Memory, Text: question, Limit: 100}
				if _, err := s.Lexical(b.Context(), s.users[0], q); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkExactWithoutIndex measures what a search costs in addition if Milvus is not used.
func BenchmarkExactWithoutIndex(b *testing.B) {
	for _, n := range []int{2000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := setup(b, nil)
			s.insertUnits(b, s.users[0], s.remember(b, s.users[0], "start", nil), n, "now() - interval '1 hour'")
			v := randomUnit(rand.New(rand.NewPCG(1, 1)))
			percentiles(b, func(int) {
				q := retrieve.Request{Kind: retrieve.Memory, Limit: 100, Unindexed: true}
				if hits, _, err := s.Exact(b.Context(), s.users[0], q, v); err != nil || len(hits) < n {
					b.Fatalf("%d hits, %v", len(hits), err)
				}
			})
		})
	}
}

func BenchmarkExact(b *testing.B) {
	for _, n := range []int{1999, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := setup(b, nil)
			s.insertUnits(b, s.users[0], s.remember(b, s.users[0], "start", nil), n, "now() - interval '1 hour'")
			v := randomUnit(rand.New(rand.NewPCG(1, 1)))
			percentiles(b, func(int) {
				q := retrieve.Request{Kind: retrieve.Memory, Limit: 100, WithinExactLimit: n <= placement.ExactUnits}
				if _, _, err := s.Exact(b.Context(), s.users[0], q, v); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
