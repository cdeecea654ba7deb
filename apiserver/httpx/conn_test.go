package httpx

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// Received bytes extend the deadline at the minimum rate, up to the stall timeout.
func TestReadDeadlineIsExtended(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		reason   string
		deadline time.Time
		received int64
		want     time.Time
	}{
		"Nothing":  {"The server's deadline applies until something is received.", now.Add(time.Second), 0, time.Time{}},
		"None":     {"Without a deadline there is none to extend.", time.Time{}, 1 << 20, time.Time{}},
		"MinRate":  {"Each 32 KiB earns a second.", now.Add(time.Second), 64 << 10, now.Add(3 * time.Second)},
		"TooSlow":  {"A deadline that has passed is not renewed.", now.Add(-10 * time.Second), 32 << 10, now.Add(-9 * time.Second)},
		"Stalling": {"A fast start does not pay for a long pause.", now, 1 << 30, now.Add(stallTimeout)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &conn{deadline: tc.deadline, received: tc.received}
			if got := c.extended(now); !got.Equal(tc.want) {
				t.Errorf("%s Deadline %v, want %v", tc.reason, got.Sub(now), tc.want.Sub(now))
			}
		})
	}
}

// limited is a server with limits of connections.
type limited struct {
	*Conns

	addr   string
	closed chan struct{} // receives a value for each connection that the server has closed
}

// newLimited starts a server.
func newLimited(t *testing.T, total, perAddress int, trusted ...netip.Prefix) *limited {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limited{
		Conns: NewConns(prometheus.NewRegistry(), &Proxies{Trusted: trusted}),
		addr:  l.Addr().String(), closed: make(chan struct{}, 1),
	}
	s.total, s.perAddress = total, perAddress
	server := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, ConnState: func(_ net.Conn, state fasthttp.ConnState) {
		if state == fasthttp.StateClosed {
			select {
			case s.closed <- struct{}{}:
			default:
			}
		}
	}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.Listener(l)) }()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return s
}

func (s *limited) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Connections above a limit are rejected, and a closed one makes room for another.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		total, perAddress int
		trusted           []netip.Prefix
		want              int
	}{
		"PerAddress":   {total: 10, perAddress: 3, want: 3},
		"Total":        {total: 4, perAddress: 10, want: 4},
		"TrustedProxy": {total: 5, perAddress: 2, trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLimited(t, tc.total, tc.perAddress, tc.trusted...)
			var open []net.Conn
			for range tc.want + 3 {
				if c := s.dial(t); serves(t, c) {
					open = append(open, c)
				}
			}
			if len(open) != tc.want {
				t.Fatalf("%d connections were served, want %d", len(open), tc.want)
			}
			if err := open[0].Close(); err != nil {
				t.Fatal(err)
			}
			<-s.closed
			if !serves(t, s.dial(t)) {
				t.Error("a closed connection makes no room for another")
			}
		})
	}
}

// serves reports whether the server serves a connection. Otherwise it must reject the request
// and close the connection.
func serves(t *testing.T, c net.Conn) bool {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable {
		return err == nil
	}
	const want = `{"error":"too many connections; try again","code":"unavailable"}`
	if string(body) != want || response.Header.Get("Retry-After") == "" {
		t.Errorf("rejected with %q, Retry-After %q; want %q with Retry-After", body, response.Header.Get("Retry-After"), want)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the rejection: %v, want a closed connection", err)
	}
	return false
}

// A rejected connection that sends nothing is closed, and no more connections wait than the
// limit allows.
func TestRejectedConnectionsDoNotWait(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 0, 0)
	s.rejecting.Add(maxRejecting)
	c := s.dial(t)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("while too many connections are rejected: %v, want a closed connection", err)
	}
	s.rejecting.Add(-maxRejecting)
	c = s.dial(t)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a rejected connection that sends nothing: %v, want a closed connection", err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.rejecting.Load() != 0 { // the client has seen the close before the server counts it
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
