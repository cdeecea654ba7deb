package retrieve

import (
	"sync"
	"time"
)

const (
	firstPause = 500 * time.Millisecond
	maxPause   = 4 * time.Second
)

// breaker keeps calls away from what is down, so that not every search waits
// for its deadline. After a failure it lets nothing through for a while, then
// one call to try; each further failure doubles the while. The zero value lets
// everything through.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// allow reports whether a call may go through at now.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	// The others wait for what this one finds out.
	b.until = now.Add(maxPause)
	return true
}

// done notes how a call that was allowed went; changed says that this is news.
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

// unknown notes that a call that was allowed was given up before it ended.
func (b *breaker) unknown(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures > 0 {
		b.until = now
	}
}
