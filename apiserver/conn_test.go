package apiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A body that is only announced times out like the headers, on every API and however large it is: before, 4 GiB had
// 36 hours.
func TestAnnouncedBodiesHaveTheHeaderTimeout(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) {
		c.ReadTimeout = 200 * time.Millisecond
		c.Sessions = struct{ tenant.SessionStore }{}
		c.OAuth = oauth.NewService(oauth.Config{URL: &url.URL{Scheme: "https", Host: "mnemo.test"}})
	})
	for path, tc := range map[string]struct {
		kind   string
		length int64
	}{
		"/mem0/v1/memories/":       {"application/json", 30},
		"/mcp":                     {"application/json", 30},
		"/register":                {"application/json", 30},
		"/token":                   {"application/x-www-form-urlencoded", 30},
		"/sign-in":                 {"application/x-www-form-urlencoded", 30},
		"/api/chat-history/import": {formData + "; boundary=x", 4 << 30},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := h.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n"+
				"Authorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, h.alice, tc.kind, tc.length))
			if !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, requestTimeout) {
				t.Errorf("answer %q, want 408 with a sentence", got)
			}
		})
	}
}

// A body that arrives slower than the read timeout, but above the minimum rate, is read.
func TestSlowBodiesAreRead(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.ReadTimeout = 300 * time.Millisecond })
	conn := h.dial(t)
	const chunk, chunks = 32 << 10, 5 // a second each at the minimum rate
	body := `{"name":"` + strings.Repeat("x", chunk*chunks-11) + `"}`
	head := fmt.Sprintf("POST /api/buckets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"+
		"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", h.alice, len(body))
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for i := range chunks {
		<-tick.C
		if _, err := io.WriteString(conn, body[i*chunk:(i+1)*chunk]); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400") {
		t.Errorf("answer %q, %v; want 400 for the name's length", got, err)
	}
}

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
			h := newTestServer(t, func(c *Config) { c.TrustedProxies = tc.trusted })
			h.conns.mu.Lock()
			h.conns.total, h.conns.perAddress = tc.total, tc.perAddress
			h.conns.mu.Unlock()
			var open []net.Conn
			for range tc.want + 3 {
				if c := h.dial(t); serves(t, c) {
					open = append(open, c)
				}
			}
			if len(open) != tc.want {
				t.Fatalf("%d connections were served, want %d", len(open), tc.want)
			}
			if err := open[0].Close(); err != nil {
				t.Fatal(err)
			}
			h.eventually(t, func() string { // the server has seen the close
				if !serves(t, h.dial(t)) {
					return "a closed connection makes no room for another"
				}
				return ""
			})
		})
	}
}

// serves reports whether the server serves a connection. Otherwise it must reject the request
// and close the connection.
func serves(t *testing.T, c net.Conn) bool {
	t.Helper()
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
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
	h := newTestServer(t)
	h.conns.mu.Lock()
	h.conns.total = 0
	h.conns.mu.Unlock()
	h.conns.rejecting.Add(maxRejecting)
	c := h.dial(t)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("while too many connections are rejected: %v, want a closed connection", err)
	}
	h.conns.rejecting.Add(-maxRejecting)
	c = h.dial(t)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a rejected connection that sends nothing: %v, want a closed connection", err)
	}
	h.eventually(t, func() string {
		if n := h.conns.rejecting.Load(); n != 0 {
			return fmt.Sprintf("%d connections are still being rejected", n)
		}
		return ""
	})
}
