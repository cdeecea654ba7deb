package devenv

import (
	"fmt"
	"runtime"
	"sync"
)

// Thread runs functions on a dedicated OS thread, for two reasons: the kernel
// ends a child when its parent's *thread* ends (PR_SET_PDEATHSIG), so processes
// are started from a thread that lives as long as the program; and a network
// namespace belongs to a thread.
type Thread struct {
	jobs chan func()
}

// NewThread starts a thread and runs setup on it. The thread ends with the
// program or on Close.
func NewThread(setup func() error) (*Thread, error) {
	t := &Thread{jobs: make(chan func())}
	ready := make(chan error)
	go func() {
		// Never unlocked: a thread whose namespace was changed must end with its
		// goroutine and must not return to the scheduler.
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

// Do runs f on the thread and waits for it.
func (t *Thread) Do(f func()) {
	done := make(chan struct{})
	t.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Close ends the thread after its current job.
func (t *Thread) Close() { close(t.jobs) }

// starter is the thread from which processes are started.
var starter = sync.OnceValue(func() *Thread {
	t, err := NewThread(func() error { return nil })
	if err != nil {
		panic(err) // setup cannot fail
	}
	return t
})
