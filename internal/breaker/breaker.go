package breaker

import (
	"sync"
	"time"
)

// The pauses without calls.
const (
	FirstPause = 500 * time.Millisecond
	MaxPause   = 4 * time.Second
)

// Outcome is what a call says about a dependency.
type Outcome int

// The outcomes.
const (
	Unknown   Outcome = iota // for instance, the caller gave up
	Available                // the dependency responded, perhaps with an error
	Unavailable
)

// Breaker rejects calls to an unavailable dependency, so that not every call waits for its deadline. After a
// failure it rejects calls for FirstPause, and then admits one probe. Each further failure doubles the pause, up to
// MaxPause. A probe that is not done within MaxPause is followed by another. The zero value admits every call.
type Breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// Call is an admitted call.
type Call struct {
	// Probe reports that the dependency was unavailable. Other calls are rejected until the probe is done, or for
	// MaxPause.
	Probe bool
}

// Start reports whether a call is admitted at a time. If it is, Done must follow.
func (b *Breaker) Start(now time.Time) (c Call, admitted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return Call{}, true
	}
	if now.Before(b.until) {
		return Call{}, false
	}
	b.until = now.Add(MaxPause)
	return Call{Probe: true}, true
}

// Done records the outcome of an admitted call, and reports whether the availability changed.
func (b *Breaker) Done(now time.Time, c Call, o Outcome) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o {
	case Available:
		changed = b.failures > 0
		b.failures, b.until = 0, time.Time{}
	case Unavailable:
		changed = b.failures == 0
		b.failures++
		const doublings = 3 // from FirstPause to MaxPause
		// A call from before a probe does not end the wait for it.
		if until := now.Add(FirstPause << min(b.failures-1, doublings)); c.Probe || until.After(b.until) {
			b.until = until
		}
	case Unknown:
		if c.Probe {
			b.until = now
		}
	}
	return changed
}
