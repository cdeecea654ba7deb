package postgres_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// patience is the timeout for expected events.
const patience = 30 * time.Second

// flakyConn is a proxy in front of the server that can be cut off.
type flakyConn struct {
	to, address string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn

	answered   atomic.Bool  // PostgreSQL sent something after the last request
	roundTrips atomic.Int64 // of all connections, one after the other
}

// newFlakyConn returns a proxy and the database as reached through it.
func newFlakyConn(t *testing.T, d postgrestest.Database) (*flakyConn, postgrestest.Database) {
	t.Helper()
	app, err := url.Parse(d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	c := &flakyConn{to: app.Host, address: "127.0.0.1:0"}
	c.restore(t)
	t.Cleanup(c.cut)
	app.Host = c.address
	return c, postgrestest.Database{OwnerURL: d.OwnerURL, AppURL: app.String()}
}

// restore accepts connections again, at the same address.
func (c *flakyConn) restore(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener, c.address = l, l.Addr().String()
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", c.to)
			if err != nil {
				_ = near.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			c.mu.Unlock()
			go pass(near, far, func() { c.answered.Store(true) })
			go pass(far, near, func() {
				if c.answered.Swap(false) {
					c.roundTrips.Add(1)
				}
			})
		}
	}()
}

// pass copies bytes and calls each for every piece, before it arrives.
func pass(to, from net.Conn, each func()) {
	_, _ = io.Copy(writerFunc(func(p []byte) (int, error) {
		each()
		return to.Write(p)
	}), from)
	_ = to.Close()
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// cut closes every connection and rejects new ones.
func (c *flakyConn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.listener.Close()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

func wantUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	wantKind(t, what, err, fault.Unavailable)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.RetryAfter <= 0 {
		t.Errorf("%s: %v has no RetryAfter", what, err)
	}
}

func TestDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	proxy, d := newFlakyConn(t, postgrestest.Create(t))
	b := setupIn(t, d, nil)
	scope := b.users[0]
	b.remember(t, scope, "before", nil)
	proxy.cut()
	calls := map[string]func() error{
		"ping":     func() error { return b.Ping(t.Context()) },
		"identify": func() error { _, err := b.Identify(t.Context(), tenant.Hash{1}); return err },
		"usage":    func() error { _, err := b.Usage(t.Context(), scope.Tenant); return err },
		"create": func() error {
			_, err := b.Memories().Create(t.Context(), scope, newMemory("while unavailable"))
			return err
		},
		"list": func() error {
			_, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 1})
			return err
		},
		"apply": func() error {
			b.specs[0].DisplayName = "another"
			_, err := b.Apply(t.Context(), b.specs[0])
			return err
		},
		"open": func() error { _, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL}); return err },
	}
	for name, call := range calls {
		wantUnavailable(t, name, call())
	}
	proxy.restore(t)
	if _, err := b.Memories().Create(t.Context(), scope, newMemory("after")); err != nil {
		t.Errorf("after the database returned: %v", err)
	}
}

// A server terminates its sessions before it stops.
func TestTerminatedSessionsAreRetryable(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	admin, err := pgx.Connect(t.Context(), testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	var name string
	if err := b.owner.QueryRow(t.Context(), "select current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				_, err := b.Memories().Create(t.Context(), b.users[i], newMemory(fmt.Sprint("some text ", n)))
				if err != nil && !fault.Is(err, fault.Unavailable) {
					t.Errorf("while sessions were terminated: %v", err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 20 {
		_, err := admin.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename = 'mnemo_test_app'", name)
		if err != nil {
			t.Error(err)
		}
	}
	close(stop)
	writers.Wait()
	// The pool may still have connections whose sessions were terminated.
	const connections = 24
	for range connections + 1 {
		if _, err = b.Memories().Create(t.Context(), b.users[0], newMemory("afterwards")); !fault.Is(err, fault.Unavailable) {
			break
		}
	}
	if err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestOpenRejectsTheOwner(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	for name, url := range map[string]string{"the owner": d.OwnerURL, "no URL": "postgres://:x:y"} {
		db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err == nil {
			db.Close()
			t.Errorf("Open with %s succeeded, want an error", name)
		}
	}
}

func TestInvalidTenantIDIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, id := range []tenant.ID{"no-uuid", "'; drop table memories; --", "{" + b.users[0].Tenant + "}"} {
		_, _, err := b.Memories().List(t.Context(), tenant.Scope{Tenant: id, User: b.users[0].User}, memory.Filter{Limit: 1})
		wantKind(t, string(id), err, fault.NotFound)
	}
}
