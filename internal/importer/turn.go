package importer

import (
	"context"
	"errors"
	"time"
)

const (
	// defaultTurn is how long an import runs before it yields to others that wait.
	defaultTurn = 10 * time.Second
	// turnCheck is the shortest time between two checks whether others wait.
	turnCheck = time.Second
	// turnPause is when an import that yielded is retried. The jobs of the others
	// are older.
	turnPause = time.Millisecond
)

// errTurnOver interrupts an import so that others can run.
var errTurnOver = errors.New("other imports wait")

// turn is the time that a worker spends on an import while others wait.
type turn struct {
	leases Leases
	run    Run
	length time.Duration
	began  time.Time
	ends   time.Time // zero until the first batch
}

func newTurn(leases Leases, run Run, length time.Duration) *turn {
	return &turn{leases: leases, run: run, length: length, began: time.Now()}
}

// over reports whether the import must stop before its next batch, because its turn is
// over and imports of other users wait. A turn begins with the first batch and lasts at
// least as long as it took to find it: the next turn reads the file again up to there.
func (t *turn) over(ctx context.Context) bool {
	now := time.Now()
	if t.ends.IsZero() {
		t.ends = now.Add(max(t.length, now.Sub(t.began)))
		return false
	}
	if now.Before(t.ends) {
		return false
	}
	t.ends = now.Add(min(t.length, turnCheck))
	waiting, err := t.leases.Waiting(ctx, t.run)
	return err == nil && waiting // an unavailable store ends the import otherwise
}
