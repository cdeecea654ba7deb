package apiserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxValues is the most values of a JSON body.
const maxValues = 500_000

// A body of many tiny values is refused before it is decoded: three bodies of 45 MiB
// with {},{},… raised the memory of the process to 4.7 GiB.
func TestBodiesOfManyValuesAreRejected(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	body := `{"conversation":{"id":"c","title":"t","createdAt":"2026-01-01T00:00:00Z","messages":[{}` + strings.Repeat(",{}", maxValues/2) + `]}}`
	got := h.call(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", body)
	if want := fmt.Sprintf("the body must have at most %d JSON values", maxValues); got.status != http.StatusBadRequest || got.json(t)["error"] != want {
		t.Errorf("%d %.200s, want 400 with %q", got.status, got.body, want)
	}
}

// Bodies in memory are limited for a user and in total, in every API, and a finished request
// returns its share. Requests of usual size are always served.
func TestIntakeIsLimited(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct{ path, body, want string }{
		"API":  {"/api/memory", `{"text":"a"}`, "memoryId"},
		"Mem0": {"/mem0/v3/memories/", `{}`, `"count":0`},
		"MCP":  {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `"store_memory"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTestServer(t)
			large := strings.Repeat(" ", 2*tenant.FreeMemory) + r.body
			expect := func(body string, status int, message string) {
				t.Helper()
				got := h.call(t, h.alice, "POST", r.path, body)
				if got.status != status || !strings.Contains(got.body, message) {
					t.Errorf("%d %s, want %d with %q", got.status, got.body, status, message)
				}
				if (got.header.Get("Retry-After") != "") != (status != http.StatusOK) {
					t.Errorf("status %d with Retry-After %q", got.status, got.header.Get("Retry-After"))
				}
			}
			release := h.fillMemory(t, h.stores.known[tenant.HashSecret(h.alice)].Scope)
			expect(large, http.StatusTooManyRequests, "too many large requests at the same time")
			expect(r.body, http.StatusOK, r.want)
			release()
			expect(large, http.StatusOK, r.want)
			h.awaitNoMemory(t) // the client has the response before the server releases it
			four := h.fillMemory(t, tenant.Scope{Tenant: "four"})
			five := h.fillMemory(t, tenant.Scope{Tenant: "five"})
			expect(large, http.StatusServiceUnavailable, "the server is transferring too much data")
			expect(r.body, http.StatusOK, r.want)
			four()
			expect(large, http.StatusOK, r.want)
			five()
			h.awaitNoMemory(t)
		})
	}
}

// fillMemory uses the whole share of a user.
func (h *testServer) fillMemory(t *testing.T, who tenant.Scope) (release func()) {
	t.Helper()
	use := h.memory.NewMemoryUse()
	use.SetUser(who)
	if err := use.Add(maxUserMemory + tenant.FreeMemory); err != nil {
		t.Fatal(err)
	}
	return use.Release
}

// awaitNoMemory waits until no request uses memory: the last response may have arrived before its body is released.
func (h *testServer) awaitNoMemory(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for h.memory.Used() != 0 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// Responses that clients do not read use memory of a limited size, which is free as soon as a client disconnects. 25
// connections that requested a conversation of 31 MiB raised the memory of the process from 1,071 to 3,709 MiB.
func TestUnreadResponsesAreLimited(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const fitting, size = 3, 20 << 20
	path := h.fill(t, h.alice).Replace("/api/chat-history/conversation?conversationId=$c")
	u, end, err := h.stores.begin(h.stores.known[tenant.HashSecret(h.alice)].Scope)
	for _, messages := range u.messages {
		messages[0].Text = strings.Repeat("x", size)
	}
	if end(); err != nil {
		t.Fatal(err)
	}
	var unread []net.Conn
	for range fitting {
		conn := h.dial(t)
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, h.alice); err != nil {
			t.Fatal(err)
		}
		start := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, start); err != nil || string(start) != "HTTP/1.1 200" {
			t.Fatalf("%s %v", start, err)
		}
		unread = append(unread, conn)
	}
	if used := h.memory.Used(); used < fitting*(size-tenant.FreeMemory) {
		t.Errorf("%d bytes are counted for %d responses of %d bytes that are not sent", used, fitting, size)
	}
	got := h.call(t, h.alice, "GET", path, "")
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one more response: %d %.200s, want 429 with Retry-After", got.status, got.body)
	}
	h.ok(t, h.alice, "GET", "/api/buckets", "")
	for _, conn := range unread {
		_ = conn.Close()
	}
	h.awaitNoMemory(t)
	h.ok(t, h.alice, "GET", path, "")
}

// A change that was made is acknowledged, however much its response adds to the memory in use.
func TestResponsesOfChangesAreSent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	defer h.fillMemory(t, h.stores.known[tenant.HashSecret(h.alice)].Scope)()
	var messages []string
	for i := range 20 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"%d%s"}`, i, strings.Repeat("\x7f", 700)))
	}
	body := `{"infer":false,"user_id":"alice","messages":[` + strings.Join(messages, ",") + `]}`
	if len(body) > tenant.FreeMemory {
		t.Fatalf("the body has %d bytes", len(body))
	}
	if got := h.call(t, h.alice, "POST", "/mem0/v3/memories/add/", body); got.status != http.StatusOK || len(got.body) <= tenant.FreeMemory {
		t.Errorf("%d with %d bytes: %.200s", got.status, len(got.body), got.body)
	}
}

// Clients without a token share a part of the memory, which is not needed to read what everybody may read.
func TestPublicResponsesUseNoMemory(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	defer h.fillMemory(t, tenant.Scope{})()
	got := h.ok(t, "", "GET", "/openapi.json", "")
	if len(got.body) <= tenant.FreeMemory {
		t.Errorf("%d bytes, want more than are free", len(got.body))
	}
}
