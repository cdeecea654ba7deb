package milvus

import (
	"sync"
	"time"
)

// probePause is the time between two calls to a store that does not respond.
const probePause = time.Second

// outcome is what a call says about a store.
type outcome int

const (
	unknown outcome = iota
	alive           // it responded, perhaps with an error
	dead            // it did not respond
)

// gate admits calls to a store: all of them while it responds, and otherwise one at a time
// with pauses. The zero value admits all.
type gate struct {
	mu      sync.Mutex
	failing bool
	probing bool // a probe is running
	until   time.Time
}

// enter reports whether a call is admitted, and whether it probes a store that did not
// respond. leave must follow if it is admitted.
func (g *gate) enter(now time.Time) (admitted, probe bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.failing {
		return true, false
	}
	if g.probing || now.Before(g.until) {
		return false, false
	}
	g.probing = true
	return true, true
}

// leave records the outcome of an admitted call.
func (g *gate) leave(now time.Time, probe bool, o outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if probe {
		g.probing = false
	}
	switch o {
	case alive:
		g.failing = false
	case dead:
		g.failing, g.until = true, now.Add(probePause)
	case unknown:
	}
}
