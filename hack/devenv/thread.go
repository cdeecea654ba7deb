package devenv

import (
	"fmt"
	"runtime"
	"sync"
)

// thread runs functions on one OS thread of its own. Two things need that: the
// kernel ends a child with its parent's *thread* (PR_SET_PDEATHSIG), so
// processes are started from a thread that lives as long as the program; and a
// network namespace belongs to a thread.
type thread struct {
	jobs chan func()
}

// newThread starts a thread, on which it runs setup first. The thread ends with
// the program or with close.
func newThread(setup func() error) (*thread, error) {
	t := &thread{jobs: make(chan func())}
	ready := make(chan error)
	go func() {
		// Never unlocked: a thread whose namespace was changed must end with
		// its goroutine and not go back to the scheduler.
		runtime.LockOSThread()
		if err := setup(); err != nil {
			ready <- err
			return
		}
		ready <- nil
		for job := range t.jobs {
			job()
		}
	}()
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("prepare thread: %w", err)
	}
	return t, nil
}

// do runs f on the thread and waits for it.
func (t *thread) do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (t *thread) close() { close(t.jobs) }

// starter is the thread from which processes are started.
var starter = sync.OnceValue(func() *thread {
	t, err := newThread(func() error { return nil })
	if err != nil {
		panic(err) // setup cannot fail
	}
	return t
})
