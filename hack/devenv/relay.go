package devenv

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay forwards connections to a server that clients cannot reach directly.
type Relay struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// StartRelay accepts connections to addr and connects each to one from dial.
func StartRelay(addr string, dial func() (net.Conn, error)) (*Relay, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for relay: %w", err)
	}
	r := &Relay{listener: l, dial: dial, open: map[net.Conn]bool{}}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.join(in)
		}
	}()
	return r, nil
}

// join copies between two connections until one of them ends.
func (r *Relay) join(in net.Conn) {
	defer in.Close()
	out, err := r.dial()
	if err != nil {
		return
	}
	defer out.Close()
	if !r.track(in, out) {
		return
	}
	defer r.untrack(in, out)
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func (r *Relay) track(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.open[c] = true
	}
	return !r.closed
}

func (r *Relay) untrack(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.open, c)
	}
}

// Close stops listening and closes all connections.
func (r *Relay) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	_ = r.listener.Close()
	for c := range r.open {
		_ = c.Close()
	}
}
