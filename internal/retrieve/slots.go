package retrieve

import (
	"context"
	"runtime"
	"sync"
)

// slotsPerProcessor is the number of searches per processor that may hold units while they wait for the vector of their query.
const slotsPerProcessor = 4

// slots limits how many searches hold units, up to 2 MB each, while they wait for the vector of their query. With more clients
// than the embedder serves at once, the others wait for it before they read units.
type slots chan struct{} // has an element for each slot in use

func newSlots() slots { return make(slots, slotsPerProcessor*runtime.GOMAXPROCS(0)) }

// slot is the slot of one search.
type slot struct {
	slots slots
	ready chan struct{} // closed when the vector is known, or there will be none

	mu             sync.Mutex
	held, released bool
}

func (s slots) slot() *slot { return &slot{slots: s, ready: make(chan struct{})} }

// wait returns when the units can be read: a slot is free, or no longer needed.
func (s *slot) wait(ctx context.Context) {
	select {
	case <-s.ready:
		return
	default:
	}
	select {
	case s.slots <- struct{}{}:
		s.hold()
	case <-s.ready:
	case <-ctx.Done():
	}
}

// hold records that the search uses a slot, or frees it if the search has ended, as after a panic.
func (s *slot) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held = !s.released; !s.held {
		<-s.slots
	}
}

// release frees the slot once the search no longer waits for the vector, or holds no units. It can be called more than once.
func (s *slot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		<-s.slots
	}
	s.held, s.released = false, true
}
