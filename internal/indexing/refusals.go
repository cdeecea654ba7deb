package indexing

import (
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

const (
	// firstRetry is the delay after which a refused text is embedded again. It
	// doubles with each refusal, up to lastRetry.
	firstRetry = 10 * time.Minute
	lastRetry  = 24 * time.Hour
	// maxRefusals bounds the memory. A unit that is not remembered is retried
	// with every sweep.
	maxRefusals = 10_000
	// probeText is a text that every model accepts.
	probeText = "text"
)

// refusals remembers the units whose text the embedder refused, and when to retry.
// It is lost with the process, which retries all of them once.
type refusals struct {
	now func() time.Time

	mu    sync.Mutex
	units map[refusalKey]retry
}

// refusalKey is a unit and the generation whose embedder refused it.
type refusalKey struct {
	unit       retrieve.UnitID
	generation placement.GenerationID
}

type retry struct {
	at    time.Time
	delay time.Duration
}

func newRefusals() *refusals { return &refusals{now: time.Now, units: map[refusalKey]retry{}} }

// waits reports whether a unit must not be retried yet.
func (r *refusals) waits(id refusalKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now().Before(r.units[id].at)
}

// add records a refusal and returns the delay before the next attempt.
func (r *refusals) add(id refusalKey) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.units[id]
	for other := range r.units {
		if ok || len(r.units) < maxRefusals {
			break
		}
		delete(r.units, other)
	}
	delay := min(max(2*last.delay, firstRetry), lastRetry)
	r.units[id] = retry{at: r.now().Add(delay), delay: delay}
	return delay
}

// remove records that a text was accepted.
func (r *refusals) remove(id refusalKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.units, id)
}
