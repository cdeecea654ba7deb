package httpx

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// maxWaiting and turnTimeout limit how many more requests of a user wait for their turn, and how long.
	maxWaiting  = 64
	turnTimeout = 10 * time.Second
)

// Turns limits the concurrent requests of each user. Others wait in the order of their arrival.
type Turns[K comparable] struct {
	limit int

	mu    sync.Mutex
	users map[K]*userTurns
}

type userTurns struct {
	running int
	waiting []chan struct{}
}

// NewTurns returns turns for a number of concurrent requests of each user.
func NewTurns[K comparable](limit int) *Turns[K] {
	return &Turns[K]{limit: limit, users: map[K]*userTurns{}}
}

// Take waits for a turn and returns the function that ends it. It returns RateLimited if that takes too long.
func (t *Turns[K]) Take(ctx context.Context, who K) (end func(), err error) {
	turn, err := t.enqueue(who)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	select {
	case <-turn:
		return func() { t.end(who) }, nil
	case <-ctx.Done():
		t.leave(who, turn)
		return nil, errBusy
	}
}

var errBusy error = &fault.Error{Kind: fault.RateLimited, RetryAfter: 5 * time.Second,
	Message: "too many requests of this user at the same time; wait for responses before sending more"}

// enqueue returns a channel that is closed when it is the request's turn.
func (t *Turns[K]) enqueue(who K) (chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.users[who]
	if u == nil {
		u = &userTurns{}
		t.users[who] = u
	}
	turn := make(chan struct{})
	switch {
	case u.running < t.limit:
		u.running++
		close(turn)
	case len(u.waiting) >= maxWaiting:
		return nil, errBusy
	default:
		u.waiting = append(u.waiting, turn)
	}
	return turn, nil
}

// end gives the turn to the next request.
func (t *Turns[K]) end(who K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.users[who]
	if len(u.waiting) > 0 {
		close(u.waiting[0])
		u.waiting = slices.Delete(u.waiting, 0, 1)
		return
	}
	if u.running--; u.running == 0 {
		delete(t.users, who)
	}
}

// leave gives up waiting. The turn may have come in the meantime.
func (t *Turns[K]) leave(who K, turn chan struct{}) {
	t.mu.Lock()
	u := t.users[who]
	i := slices.Index(u.waiting, turn)
	if i >= 0 {
		u.waiting = slices.Delete(u.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.end(who)
	}
}
