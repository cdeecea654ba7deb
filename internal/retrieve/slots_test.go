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
	read     Prefetched
	reads    atomic.Int64
}

func (s *slowEmbedder) Prefetch(context.Context, tenant.Scope, Query) (Prefetched, bool, error) {
	s.reads.Add(1)
	return s.read, s.read.Nearest != nil, nil
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
			s := &slowEmbedder{stores: &stores{}, embedded: make(chan struct{}), read: Prefetched{Nearest: noUnits}}
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
			if n := s.reads.Load(); n != slots+3 && name == "Search" { // creations need no units without a vector
				t.Errorf("%d of %d searches read their units", n, slots+3)
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

func noUnits([]float32) ([]Hit, Coverage) { return nil, Coverage{All: true} }

// TestSearchesWithoutUnitsNeedNoSlot: searches that hold no units, or those of the cache, do not wait for others.
func TestSearchesWithoutUnitsNeedNoSlot(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]Prefetched{"none": {}, "cached": {Nearest: noUnits, Cached: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowEmbedder{stores: &stores{}, embedded: make(chan struct{}), read: read}
			e := New(Config{Searcher: s, Embedders: Embedders{0: s}})
			var wait sync.WaitGroup
			for range 3 * cap(e.slots) {
				wait.Go(func() {
					if _, err := e.Search(t.Context(), tenant.Scope{}, homeLocation, Query{Kind: Memory, Text: "q", Limit: 10, Group: 1}); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			synctest.Wait()
			if n := s.reads.Load(); n != int64(3*cap(e.slots)) {
				t.Errorf("%s: %d searches read their units before the query was embedded, want %d", name, n, 3*cap(e.slots))
			}
			close(s.embedded)
			wait.Wait()
		})
	}
}

// TestSlotAfterPanic: a slot that is taken after the search has ended, as after a panic of the embedder, is free again.
func TestSlotAfterPanic(t *testing.T) {
	t.Parallel()
	all := newSlots()
	s := all.slot()
	s.release()
	s.wait(t.Context())
	if len(all) != 0 {
		t.Errorf("%d slots are in use, want none", len(all))
	}
}
