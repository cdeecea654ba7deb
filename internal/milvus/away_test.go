package milvus_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestAwayAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.place, entry(1, b.alice.User, 1))
	gate := newGate(t, testkit.Milvus(t).Addr)
	c := config(t, b.prefix)
	c.Address = gate.addr
	x := open(t, c) // while the server is away
	query := retrieve.Query{Kind: retrieve.Memory, Limit: 1}

	away := func() {
		t.Helper()
		for name, call := range map[string]func(context.Context) error{
			"Ping": x.Ping,
			"Search": func(ctx context.Context) error {
				_, err := x.Search(ctx, b.alice, b.place, query, axis(1))
				return err
			},
			"Upsert": func(ctx context.Context) error {
				return x.Upsert(ctx, b.tenant, b.place, []retrieve.Entry{entry(2, b.alice.User, 1)})
			},
			"Delete": func(ctx context.Context) error {
				return x.Delete(ctx, b.tenant, b.place, []retrieve.UnitID{2})
			},
			"List": func(ctx context.Context) error {
				_, err := x.List(ctx, b.tenant, b.place, 0, 1)
				return err
			},
			"Ensure": func(ctx context.Context) error { _, err := x.Ensure(ctx, b.place); return err },
			"Drop":   func(ctx context.Context) error { return x.Drop(ctx, b.place) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			if err := call(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s while away = %v, want Unavailable", name, err)
			}
			if took := time.Since(start); took > 900*time.Millisecond {
				t.Errorf("%s took %v to say so; it must not wait for its deadline", name, took)
			}
			cancel()
		}
	}
	back := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			hits, err := x.Search(ctx, b.alice, b.place, query, axis(1))
			if err == nil && len(hits) == 1 {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("Search after the return = %v, %v", hits, err)
			}
		}
	}
	away()
	gate.open(t)
	back()
	gate.close()
	away()
	gate.open(t)
	back()
}

func TestWrongPasswordSaysSo(t *testing.T) {
	t.Parallel()
	c := config(t, "")
	c.Password = "wrong"
	err := open(t, c).Ping(t.Context())
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("Ping = %v, want Unavailable that speaks of the credentials", err)
	}
}

// gate forwards connections to a server while it is open. Its address stays.
type gate struct {
	addr, target string
	mu           sync.Mutex
	listener     net.Listener
	conns        []net.Conn
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	g := &gate{addr: l.Addr().String(), target: target}
	_ = l.Close()
	t.Cleanup(g.close)
	return g
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", g.addr)
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
			out, err := net.Dial("tcp", g.target)
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

func (g *gate) close() {
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
