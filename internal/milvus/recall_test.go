package milvus_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// With an interim index on growing segments, Milvus finds only about a fifth of the
// results of a filtered search. It builds that index only from enough rows (20,000, not
// 6,000). The test compares search results with an exact computation.
func TestRecallOfUserWithFewRows(t *testing.T) {
	t.Parallel()
	const (
		others, users = 20000, 29
		own, searches = 200, 60
		wanted        = 10
		size          = 384
	)
	b := setupWith(t, size)
	r := rand.New(rand.NewPCG(7, 11))
	var entries []indexing.Entry
	for i := range others + own {
		user := b.alice.User
		if i >= own {
			user = tenant.UserID(100 + i%users)
		}
		entries = append(entries, indexing.Entry{ID: retrieve.UnitID(i + 1), User: int64(user),
			Kind: retrieve.Memory, Group: 1, Vector: randomVector(r, size)})
	}
	mine := entries[:own:own]
	shuffled := slices.Clone(entries)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	b.upsert(t, b.location, shuffled...)

	found := 0
	var took []time.Duration
	for range searches {
		v := randomVector(r, size)
		exact := slices.Clone(mine)
		slices.SortFunc(exact, func(a, b indexing.Entry) int { return cmp.Compare(dot(b.Vector, v), dot(a.Vector, v)) })
		start := time.Now()
		hits, err := b.Search(t.Context(), b.alice, b.location, retrieve.Request{Kind: retrieve.Memory, Limit: wanted}, v)
		took = append(took, time.Since(start))
		if err != nil {
			t.Fatalf("Search: %v", err)
		}
		for _, e := range exact[:wanted] {
			if slices.ContainsFunc(hits, func(h retrieve.Hit) bool { return h.ID == e.ID }) {
				found++
			}
		}
	}
	slices.Sort(took)
	recall := float64(found) / (searches * wanted)
	t.Logf("recall@%d %.3f, search p50 %v p95 %v", wanted, recall, took[searches/2], took[searches*95/100])
	if recall < 0.95 {
		t.Errorf("recall@%d of a user with %d of %d rows = %.2f, want at least 0.95: "+
			"start Milvus with QUERYNODE_SEGCORE_INTERIMINDEX_ENABLEINDEX=false", wanted, own, own+others, recall)
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
