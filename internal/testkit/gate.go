package testkit

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Gate forwards connections to a server while it is open, so that a test can make
// the server unavailable. Its address does not change.
type Gate struct {
	Addr, target string
	mu           sync.Mutex
	listener     net.Listener
	conns        []net.Conn
}

// NewGate creates a closed gate for the server at target, host:port.
func NewGate(t testing.TB, target string) *Gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	g := &Gate{Addr: l.Addr().String(), target: target}
	_ = l.Close()
	t.Cleanup(g.Close)
	return g
}

// Open forwards connections until Close.
func (g *Gate) Open(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", g.Addr)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	g.mu.Lock()
	g.listener = l
	g.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", g.target) //nolint:noctx // closed with the incoming connection
			if err != nil {
				_ = in.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, in, out)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}

// Close closes all connections and refuses new ones.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		_ = g.listener.Close()
	}
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}
