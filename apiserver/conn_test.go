package apiserver

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
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
			if !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, httpx.RequestTimeout) {
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
