package retrieve

import (
	"context"
	"runtime"
)

// slotsPerProcessor is the number of searches per processor that may hold units while they wait for the vector of their query.
const slotsPerProcessor = 4

// slots limits how many searches hold units, up to 2 MB each, while they wait for the vector of their query. With more clients
// than the embedder serves at once, the others wait for it before they read units.
type slots chan struct{} // filled while in use

func newSlots() slots { return make(slots, slotsPerProcessor*runtime.GOMAXPROCS(0)) }

// slot is that of a search.
type slot struct {
	slots slots
	held  bool
	ready chan struct{} // closed when the vector is known, or there will be none
}

func (s slots) slot() *slot { return &slot{slots: s, ready: make(chan struct{})} }

// wait returns when the units can be read: a slot is free, or not needed any more.
func (s *slot) wait(ctx context.Context) {
	select {
	case s.slots <- struct{}{}:
		s.held = true
	case <-s.ready:
	case <-ctx.Done():
	}
}

// release ends the search.
func (s *slot) release() {
	if s.held {
		<-s.slots
	}
}
