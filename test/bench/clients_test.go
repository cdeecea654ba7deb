package bench

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mnemo-dev/mnemo/test/installation"
)

// concurrency compares one and many clients, each of another user with a thousand units.
func (s *scale) concurrency(sizes []int) {
	server, clients := s.serve(installation.ServerOptions{}), sizes[len(sizes)-1]
	t := server.AddTenant(s.TB, installation.TenantOptions{Users: names(clients), Partition: true})
	var holders []holder
	for _, name := range names(clients) {
		count := tenantUnits
		if !*full {
			count = 20
		}
		holders = append(holders, holder{t.Tenant, t.Users[name], count})
	}
	s.volume.load(s.TB, server, holders, true)
	user := func(i int) api {
		return api{url: server.URL, token: t.Tokens[fmt.Sprint("user", i%clients)], http: s.http}
	}
	texts := s.texts(10 * s.n)
	for _, operation := range []struct {
		name string
		do   func(a api, text string)
	}{
		{"search", func(a api, text string) { a.texts(s.TB, text, results) }},
		{"create", func(a api, text string) { a.create(s.TB, text+fmt.Sprint(" ", time.Now().UnixNano())) }},
	} {
		for range s.rounds {
			for _, size := range sizes {
				took, elapsed := concurrently(size, max(s.n/s.rounds, size), func(i int) { operation.do(user(i), texts[i%len(texts)]) })
				s.report.row(operation.name, "clients", size).round(took, elapsed)
			}
		}
		s.settle(server)
	}
	s.resident("clients", []point{{size: clients, server: server}})
}

// writes compares writers of one tenant with writers of many. The embedder is a stub, because the model would limit both.
func (s *scale) writes(sizes []int) {
	stub := httptest.NewServer(http.HandlerFunc(embedAnything))
	s.Cleanup(stub.Close)
	server, users := s.serve(installation.ServerOptions{Embeddings: stub.URL}), sizes[len(sizes)-1]
	points := map[int][]string{} // tokens of the users, by the number of their tenants
	for _, size := range sizes {
		for range size {
			t := server.AddTenant(s.TB, installation.TenantOptions{Users: names(users / size), Partition: true})
			for _, token := range t.Tokens {
				points[size] = append(points[size], token)
			}
		}
	}
	writers := min(32, users)
	operation, texts := fmt.Sprintf("create, %d writers, stub", writers), s.texts(10*s.n)
	for round := range 1 + s.rounds { // the first one warms the caches
		for _, size := range sizes {
			took, elapsed := concurrently(writers, 2*s.n, func(i int) {
				a := api{url: server.URL, token: points[size][i%users], http: s.http}
				a.create(s.TB, texts[i%len(texts)]+fmt.Sprint(" ", round, i))
			})
			if round > 0 {
				s.report.row(operation, "tenants", size).round(took, elapsed)
			}
			s.settle(server)
		}
	}
	one, many := s.report.row(operation, "tenants", sizes[0]), s.report.row(operation, "tenants", users)
	one.throughput, many.throughput = true, true
	s.report.compareRates(ratio{Name: fmt.Sprintf("writes/s into 1 tenant ÷ spread over %d", users), AtLeast: 0.7}, one, many)
}

func names(count int) (out []string) {
	for i := range count {
		out = append(out, fmt.Sprint("user", i))
	}
	return out
}

// texts generates texts for clients that run at the same time.
func (s *scale) texts(count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = s.volume.text(8)
	}
	return out
}

// concurrently does an operation count times with several clients, and returns the duration of each and of all.
func concurrently(clients, count int, do func(i int)) (took []time.Duration, elapsed time.Duration) {
	took = make([]time.Duration, count)
	var next atomic.Int64
	var wait sync.WaitGroup
	began := time.Now()
	for range clients {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				began := time.Now()
				do(i)
				took[i] = time.Since(began)
			}
		})
	}
	wait.Wait()
	return took, time.Since(began)
}

// settle waits until all units are indexed, so that the jobs of one measurement are not part of the next.
func (s *scale) settle(server *installation.Server) {
	s.Helper()
	installation.Eventually(s.TB, time.Hour, func() string {
		var waiting bool
		if err := server.Owner.QueryRow(s.Context(), "select exists (select from units where active and indexed_at is null)").Scan(&waiting); err != nil {
			return err.Error()
		}
		if waiting {
			return "a unit is not indexed"
		}
		return ""
	})
}

// embedAnything serves OpenAI's /embeddings with a vector that depends on the text only.
func embedAnything(w http.ResponseWriter, r *http.Request) {
	type embedding struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var request struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data := make([]embedding, len(request.Input))
	for i, text := range request.Input {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		random, vector := rand.New(rand.NewPCG(h.Sum64(), 1)), make([]float32, installation.ModelDimensions)
		for j := range vector {
			vector[j] = float32(random.NormFloat64() / math.Sqrt(installation.ModelDimensions))
		}
		data[i] = embedding{"embedding", i, vector}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}
