package embed

import (
	"context"
	"sync"
)

// queue bounds how many texts are computed at a time. It shares the slots between
// callers: each waits with a few texts only, in first-in-first-out order, so a call with
// 500 texts does not delay one with a single text.
type queue struct {
	slots  chan struct{} // filled while in use
	closed chan struct{}
	close  func() // once
}

func newQueue(slots int) *queue {
	q := &queue{slots: make(chan struct{}, slots), closed: make(chan struct{})}
	q.close = sync.OnceFunc(func() { close(q.closed) })
	return q
}

// do calls work with 0 to n-1, as far as slots are free concurrently. It returns the first
// error, also if ctx ends or the queue is closed, and only when no call of work is
// running.
func (q *queue) do(ctx context.Context, n int, work func(i int) error) error {
	if n == 1 { // without the cost of a goroutine
		return q.one(ctx, 0, work)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wait sync.WaitGroup
	for range min(n, cap(q.slots)) {
		wait.Go(func() {
			for i := range next {
				if err := q.one(ctx, i, work); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	return context.Cause(ctx)
}

// one calls work(i) in a slot.
func (q *queue) one(ctx context.Context, i int, work func(i int) error) error {
	select {
	case q.slots <- struct{}{}:
		defer func() { <-q.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-q.closed:
		return errClosed
	}
	// If several cases are ready, select chooses any.
	select {
	case <-q.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return work(i)
	}
}
