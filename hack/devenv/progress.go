package devenv

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress prints a line when a step starts and one when it ends, so that a user
// knows what a long step does and how long it will take. Its methods are safe
// for concurrent use. A nil Progress prints nothing.
type Progress struct {
	mu sync.Mutex
	w  io.Writer
}

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w}
}

// Step announces a step ("PostgreSQL 17.5", "starting") and returns the
// function that ends it. Called with an error, that function prints only that the step
// stopped; the caller reports the error.
func (p *Progress) Step(name, doing string) func(error) {
	start := time.Now()
	p.Printf("==> %s: %s", name, doing)
	return func(err error) {
		took := time.Since(start).Round(100 * time.Millisecond)
		if err != nil {
			p.Printf("    %s: stopped after %s", name, took)
			return
		}
		p.Printf("    %s: done in %s", name, took)
	}
}

// Printf prints a separate line.
func (p *Progress) Printf(format string, args ...any) {
	if p == nil || p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}
