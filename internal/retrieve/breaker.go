package retrieve

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	firstPause = 500 * time.Millisecond
	maxPause   = 4 * time.Second
)

// breaker is a circuit breaker, so that not every search waits for the deadline of
// an unavailable dependency. After a failure it rejects calls for a pause and then
// allows one probe; each further failure doubles the pause. The zero value allows
// every call.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// allow reports whether a call is allowed at now.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	// Only this call probes; the others are rejected meanwhile.
	b.until = now.Add(maxPause)
	return true
}

// done records the outcome of an allowed call and reports whether the state changed.
func (b *breaker) done(now time.Time, ok bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		changed = b.failures > 0
		b.failures = 0
		return changed
	}
	b.failures++
	b.until = now.Add(min(firstPause<<min(b.failures-1, 10), maxPause))
	return b.failures == 1
}

// unknown records that an allowed call was abandoned before it completed.
func (b *breaker) unknown(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures > 0 {
		b.until = now
	}
}

// note records the outcome of a call and logs changes of availability. A refusal is due to the
// request of one user: the dependency is available to the others.
func (e *Engine) note(ctx context.Context, b *breaker, err error, what string) {
	if IsRefused(err) {
		e.Log.WarnContext(ctx, "dependency refused a text; search is degraded", "dependency", what, "error", err)
		err = nil
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		b.unknown(e.Now())
	case !b.done(e.Now(), err == nil):
	case err == nil:
		e.Log.InfoContext(ctx, "dependency available", "dependency", what)
	default:
		e.Log.WarnContext(ctx, "dependency unavailable; search is degraded", "dependency", what, "error", err)
	}
}

// collection identifies a collection among all cells.
type collection struct{ cell, name string }

// breakerOf returns the breaker of a dependency, which it creates at its first use.
func breakerOf[K comparable](e *Engine, of map[K]*breaker, dependency K) *breaker {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := of[dependency]
	if b == nil {
		b = &breaker{}
		of[dependency] = b
	}
	return b
}
