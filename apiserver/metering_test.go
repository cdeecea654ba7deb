package apiserver

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakeCounter counts the requests of each tenant.
type fakeCounter struct {
	mu sync.Mutex
	of map[tenant.ID]int
}

func (f *fakeCounter) Add(t tenant.ID, _ time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[t]++
	return nil
}

func (f *fakeCounter) count(t tenant.ID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[t]
}

// A request is counted before its response arrives, for the tenant of the credential, and only
// if it succeeds.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	counter := &fakeCounter{of: map[tenant.ID]int{}}
	h := newTestServer(t, func(c *Config) { c.Requests = counter })
	none := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "none", User: 31}, Quota: tenant.Quota{RequestsPerMinute: 1}})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_buckets","arguments":{}}}`
	for _, c := range []struct {
		reason, token, method, path, body string
		counted                           int // for tenant one
	}{
		{"a read", h.alice, "GET", "/api/buckets", "", 1},
		{"a write", h.bob, "POST", "/api/memory", `{"text":"a"}`, 1},
		{"a tool", h.alice, "POST", "/mcp", call, 1},
		{"a message that uses no store", h.alice, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0},
		{"an invalid request", h.alice, "POST", "/api/memory", `{"text":""}`, 0},
		{"an unknown memory", h.alice, "GET", "/api/memories/x", "", 0},
		{"an unknown path", h.alice, "GET", "/api/nothing", "", 0},
		{"no token", "", "GET", "/api/buckets", "", 0},
		{"a suspended tenant", h.suspended, "GET", "/api/buckets", "", 0},
		{"the last permit of a tenant", none, "GET", "/api/buckets", "", 0},
		{"a tenant without permits", none, "GET", "/api/buckets", "", 0},
		{"another tenant", h.carol, "GET", "/api/buckets", "", 0},
		{"a public route", "", "GET", "/openapi.json", "", 0},
	} {
		before := counter.count("one")
		h.call(t, c.token, c.method, c.path, c.body)
		if got := counter.count("one") - before; got != c.counted {
			t.Errorf("%s counted %d requests, want %d", c.reason, got, c.counted)
		}
	}
	if diff := cmp.Diff(map[tenant.ID]int{"one": 3, "two": 1, "none": 1}, counter.of); diff != "" {
		t.Errorf("requests by tenant (-want +got):\n%s", diff)
	}
}
