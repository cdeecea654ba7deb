package apiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// raw sends bytes to the server and returns its output until it closes the
// connection. A connection left open fails the test.
func (h *testServer) raw(t *testing.T, request string) string {
	t.Helper()
	conn := h.dial(t)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(conn)
	if err != nil && len(out) == 0 {
		t.Fatalf("read the answer: %v", err)
	}
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		t.Fatalf("the connection stays open after %q", out)
	}
	return string(out)
}

func (h *testServer) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A response sent before the body was read closes the connection: the body, which
// looks like a request here, must not be handled as one.
func TestUnreadBodiesCloseTheConnection(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	smuggled := "GET /api/chat-history/count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.alice + "\r\n\r\n"
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d", n) }
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	const json, auth = "Content-Type: application/json", "Authorization: Bearer "
	big, huge := strings.Repeat("x", 2<<20), strings.Repeat("x", 20<<20)
	tests := map[string]struct {
		line    string
		headers []string
		body    string
		want    string
	}{
		"NoToken":       {"POST /api/memory", []string{json, length(len(smuggled))}, smuggled, "401"},
		"NoTokenChunks": {"POST /api/memory", []string{json, "Transfer-Encoding: chunked"}, chunked, "401"},
		"TooLarge":      {"POST /api/memory", []string{json, auth + h.alice, length(len(big) + len(smuggled))}, big + smuggled, "413"},
		"VeryLarge":     {"POST /api/memory", []string{json, length(len(huge) + len(smuggled))}, huge + smuggled, "401"},
		"TwoLengths":    {"POST /api/memory", []string{json, auth + h.alice, "Content-Length: 4", "Transfer-Encoding: chunked"}, chunked, "400"},
		"TooManyChunks": {"POST /api/memory", []string{json, auth + h.alice, "Transfer-Encoding: chunked"}, fmt.Sprintf("%x\r\n%s\r\n", len(big), big) + chunked, "413"},
		"NotJSON":       {"POST /api/memory", []string{"Content-Type: text/plain", auth + h.alice, length(len(smuggled))}, smuggled, "415"},
		"NoRoute":       {"POST /nothing", []string{json, length(len(smuggled))}, smuggled, "404"},
		"NoMethod":      {"PUT /api/memory", []string{json, length(len(smuggled))}, smuggled, "405"},
		"OddMethod":     {"BREW /api/memory", []string{length(len(smuggled))}, smuggled, "405"},
		"GetWithBody":   {"GET /healthz", []string{length(len(smuggled))}, smuggled, "200"},
		"PartOfBody":    {"POST /api/memory", []string{json, length(100000)}, strings.Repeat("x", 10000) + smuggled, "401"},
		"Form":          {"POST /api/memory", []string{"Content-Type: multipart/form-data; boundary=x", length(len(smuggled))}, smuggled, "401"},
		"OldClient":     {"POST /api/memory", []string{json, "Connection: close", length(len(huge) + len(smuggled))}, huge + smuggled, "401"},
		"Malformed":     {"POST /api/memory", []string{"no header"}, huge, "400"},
		"Expect":        {"POST /api/memory", []string{json, "Expect: 100-continue", length(len(smuggled))}, smuggled, "401"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := h.raw(t, tc.line+" HTTP/1.1\r\nHost: x\r\n"+strings.Join(tc.headers, "\r\n")+"\r\n\r\n"+tc.body)
			got = strings.TrimPrefix(got, "HTTP/1.1 100 Continue\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 "+tc.want) || !strings.Contains(got, "Connection: close\r\n") {
				t.Errorf("answer %q, want %s and Connection: close", got, tc.want)
			}
			if strings.Count(got, "HTTP/1.1 ") != 1 || strings.Contains(got, `{"count"`) {
				t.Errorf("the body was answered as a request: %q", got)
			}
		})
	}
}

// A body that is announced but not sent times out depending on its length.
func TestAnnouncedBodiesTimeOut(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) { c.ReadTimeout = 200 * time.Millisecond })
	for _, r := range requests {
		if r.body == "" {
			continue
		}
		head := r.method + " " + r.path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + h.alice + "\r\n"
		for name, rest := range map[string]string{"Nothing": "", "Begun": `{"te`} {
			t.Run(h.operation(r.method, r.path).OperationID+name, func(t *testing.T) {
				t.Parallel()
				got := h.raw(t, head+"Content-Length: 30\r\n\r\n"+rest)
				theContract().seeRaw(t, r.method, r.path, got)
				if !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, httpx.RequestTimeout) {
					t.Errorf("answer %q, want 408 with a sentence", got)
				}
			})
		}
	}
}

// A request that its headers already refuse is answered before its body arrives. A client that expects to be asked for
// the body is not asked.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(c *Config) {
		c.Sessions = struct{ tenant.SessionStore }{}
		c.OAuth = oauth.NewService(oauth.Config{URL: &url.URL{Scheme: "https", Host: "mnemo.test"}})
	})
	const json, form = "application/json", "application/x-www-form-urlencoded"
	tests := map[string]struct {
		line, token, kind string
		length            int64
		want              string
	}{
		"API":          {"POST /api/memory", h.alice, json, defaultBody + 1, "413"},
		"Conversation": {"POST /api/chat-history/ingest/custom-online", h.alice, json, ingestBody + 1, "413"},
		"Mem0":         {"POST /mem0/v1/memories/", h.alice, json, defaultBody + 1, "413"},
		"MCP":          {"POST /mcp", h.alice, json, defaultBody + 1, "413"},
		"Import":       {"POST /api/chat-history/import", h.alice, formData + "; boundary=x", defaultImportFile + formOverhead + 1, "413"},
		"OAuth":        {"POST /register", "", json, maxOAuth + 1, "413"},
		"Page":         {"POST /sign-in", "", form, 256<<10 + 1, "413"},
		"NoToken":      {"POST /api/memory", "", json, 10, "401"},
		"NotJSON":      {"POST /api/memory", h.alice, "text/plain", 10, "415"},
		"NoRoute":      {"POST /nothing", "", json, 10, "404"},
		"OddMethod":    {"BREW /api/memory", "", json, 10, "405"},
	}
	for name, tc := range tests {
		for _, expect := range []string{"", "Expect: 100-continue\r\n", "Expect: 100-Continue\r\n"} {
			t.Run(name+expect, func(t *testing.T) {
				t.Parallel()
				got := h.raw(t, fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n"+
					"Authorization: Bearer %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n",
					tc.line, tc.token, tc.kind, expect, tc.length))
				if !strings.HasPrefix(got, "HTTP/1.1 "+tc.want) || !strings.Contains(got, "\r\nConnection: close\r\n") {
					t.Errorf("answer %q, want %s and Connection: close", got, tc.want)
				}
			})
		}
	}
}

// A client that expects to be asked for its body is asked once, and the connection stays open.
func TestExpectedContinueIsSent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	conn := h.dial(t)
	in := bufio.NewReader(conn)
	body := `{"text":"a"}`
	head := "POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + h.alice + "\r\n"
	for _, r := range []struct{ head, body string }{
		{head + fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)), body},
		{head + "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)},
	} {
		for _, sent := range []struct {
			text   string
			status int
		}{{r.head, http.StatusContinue}, {r.body, http.StatusOK}} {
			if _, err := io.WriteString(conn, sent.text); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != sent.status || resp.Close {
				t.Fatalf("after %q: %d %s, close %v, %v; want %d", sent.text, resp.StatusCode, text, resp.Close, err, sent.status)
			}
		}
	}
}

// The server ignores a length that a client sends in the server's own header.
func TestClientsCannotSetTheDeferredLength(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, own := range []string{"X-Mnemo-Length", "x-mnemo-length"} {
		got := h.raw(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n"+own+": 40\r\n"+own+": 50\r\n\r\n"+
			"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if strings.Count(got, "HTTP/1.1 200") != 2 {
			t.Errorf("answer %q, want two responses", got)
		}
	}
}

// A connection stays open if all bodies were read, including chunked ones.
func TestReadBodiesKeepTheConnectionOpen(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	conn := h.dial(t)
	answers := bufio.NewReader(conn)
	body := `{"text":"a"}`
	large := `{"text":"` + strings.Repeat("y", 30000) + `"}`
	head := "POST /api/memory HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + h.alice + "\r\n"
	for i, request := range []string{
		head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large),
		head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large),
		"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || resp.Close {
			t.Errorf("request %d: %d %s, close %v, %v", i, resp.StatusCode, text, resp.Close, err)
		}
	}
}

// Limits are exact, and a client that sends too much still receives its response.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	padded := func(size int) string { return `{"name":"` + strings.Repeat(" ", size-11) + `"}` }
	if got := h.call(t, h.alice, "POST", "/api/buckets", padded(defaultBody)); got.status != 400 {
		t.Errorf("a body of the limit: %d %s, want 400 for what is in it", got.status, got.body)
	}
	got := h.call(t, h.alice, "POST", "/api/buckets", padded(defaultBody+1))
	if got.status != 413 || !strings.Contains(got.body, "the body must be at most 1048576 bytes") {
		t.Errorf("a body over the limit: %d %s", got.status, got.body)
	}

	conversation := strings.Replace(ingestText, "By the window.", strings.Repeat("seat ", 10<<20-100), 1)
	if got := h.call(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", conversation); got.status != 200 {
		t.Errorf("a conversation of %d bytes: %d %s", len(conversation), got.status, got.body)
	}
	got = h.call(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", conversation+strings.Repeat(" ", 600))
	if got.status != 413 || !strings.Contains(got.body, "52428800") {
		t.Errorf("a conversation over 50 MiB: %d %s", got.status, got.body)
	}
}
