package apiserver

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	clock := noon.Truncate(time.Minute).Add(48500 * time.Millisecond)
	h.limiter.Now = func() time.Time { return clock }
	quota := tenant.Quota{RequestsPerMinute: 3}
	one := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "few", User: 21}, Quota: quota})
	two := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "few", User: 22}, Quota: quota})
	for i, path := range []string{"/api/buckets", "/api/memories/x", "/api/memory?count=x"} {
		got := h.call(t, one, "GET", path, "")
		limit, left, reset := got.header.Get("RateLimit-Limit"), got.header.Get("RateLimit-Remaining"), got.header.Get("RateLimit-Reset")
		if got.status == 429 || limit != "3" || left != fmt.Sprint(2-i) || reset != "12" {
			t.Errorf("request %d: %d, limit %s, remaining %s, reset %s", i, got.status, limit, left, reset)
		}
	}
	got := h.call(t, two, "POST", "/api/memory", `{"text":"a"}`)
	if got.status != 429 || got.header.Get("Retry-After") != "12" || got.header.Get("RateLimit-Remaining") != "0" || !strings.Contains(got.body, "(3 per minute)") {
		t.Errorf("the tenant's fourth request: %d %s, Retry-After %s", got.status, got.body, got.header.Get("Retry-After"))
	}
	if got := h.call(t, h.carol, "GET", "/api/buckets", ""); got.status != 200 {
		t.Errorf("another tenant: %d", got.status)
	}
	for _, path := range []string{"/healthz", "/openapi.json"} {
		if got := h.call(t, "", "GET", path, ""); got.header.Get("RateLimit-Limit") != "" {
			t.Errorf("%s has a rate", path)
		}
	}
}

// limitsTogether: two replicas share the tenant's limit.
func (h *testServer) limitsTogether(t *testing.T, s realStores) {
	t.Helper()
	s.tenant(t, "rated", "alice", false)
	id := tenant.ID(fmt.Sprintf("0196b2f4-0000-7000-8000-%012x", "rated"))
	const hard = 200
	replicas := []*httpx.Limiter[tenant.RateLimited]{newLimiter(s.db, h.Log), newLimiter(s.db, h.Log)}
	for _, r := range replicas {
		r.Timeout = time.Minute // a replica that counts locally allows more
	}
	begun := time.Now().Truncate(time.Minute)
	var n atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for range hard / 2 {
				if replicas[w%2].Take(t.Context(), tenant.RateLimited{Tenant: id}, hard).OK {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	windows := int64(time.Now().Truncate(time.Minute).Sub(begun)/time.Minute) + 1
	if got := n.Load(); got < hard || got > hard*windows {
		t.Errorf("two replicas allowed %d of %d in %d minutes", got, hard, windows)
	}
}
