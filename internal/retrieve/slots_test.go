package retrieve

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// slowEmbedder is unavailable, but says so only when embedded is closed. It counts the searches that read their units.
type slowEmbedder struct {
	*stores
	embedded chan struct{}
	reads    atomic.Int64
}

func (s *slowEmbedder) Prefetch(ctx context.Context, scope tenant.Scope, q Query) (Prefetched, bool, error) {
	s.reads.Add(1)
	return s.stores.Prefetch(ctx, scope, q)
}

func (s *slowEmbedder) EmbedQuery(context.Context, string) ([]float32, error) {
	<-s.embedded
	return nil, errUnavailable
}

// TestSearchesWaitForSlots: only as many searches as there are slots read units before their query is embedded, so that waiting ones need little memory.
func TestSearchesWaitForSlots(t *testing.T) {
	t.Parallel()
	for name, search := range map[string]func(context.Context, *Engine, *slowEmbedder) error{
		"Search": func(ctx context.Context, e *Engine, _ *slowEmbedder) error {
			// Without a filter, the search by words would wait for a mutex, which synctest does not see.
			_, err := e.Search(ctx, tenant.Scope{}, homeLocation, Query{Kind: Memory, Text: "q", Limit: 10, Group: 1})
			return err
		},
		"Similar": func(ctx context.Context, e *Engine, s *slowEmbedder) error {
			_, err := e.Similar(ctx, tenant.Scope{}, homeLocation, Query{Kind: Memory, Limit: 1}, func() []float32 {
				<-s.embedded
				return nil
			})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowEmbedder{stores: &stores{}, embedded: make(chan struct{})}
			e := New(Config{Searcher: s, Embedders: Embedders{0: s}})
			slots := int64(cap(e.slots))
			var wait sync.WaitGroup
			for range slots + 3 {
				wait.Go(func() {
					if err := search(t.Context(), e, s); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			synctest.Wait()
			if n := s.reads.Load(); n != slots {
				t.Errorf("%s: %d of %d searches read their units before the query was embedded, want %d", name, n, slots+3, slots)
			}
			close(s.embedded)
			wait.Wait()
			if n := s.reads.Load(); n != slots+3 {
				t.Errorf("%s: %d of %d searches read their units", name, n, slots+3)
			}
			if n := len(e.slots); n != 0 {
				t.Errorf("%s: %d slots are in use after the searches", name, n)
			}
		})
	}
}

// TestSearchWithoutVectorNeedsNoSlot: a search by words does not wait for others.
func TestSearchWithoutVectorNeedsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stores{}
		e := New(Config{Searcher: s, Embedders: Embedders{0: s}})
		for range cap(e.slots) {
			e.slots <- struct{}{}
		}
		if _, err := e.Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Text: "q", Limit: 10, Ranking: Lexical}); err != nil {
			t.Fatal(err)
		}
	})
}
