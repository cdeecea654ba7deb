package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakeRates grants the permits of one minute like the database.
type fakeRates struct {
	mu    sync.Mutex
	used  int64
	trips int
	reset time.Duration
	fails error
}

func (f *fakeRates) TakePermits(_ context.Context, _ tenant.RateLimited, hard int64) (tenant.Permits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trips++
	if f.fails != nil {
		return tenant.Permits{}, f.fails
	}
	n := max(0, (hard-f.used+15)/16)
	f.used += n
	return tenant.Permits{Granted: n, Remaining: max(0, hard-f.used), Reset: f.reset}, nil
}

func newTestLimiter(store tenant.RateStore, clock *time.Time) *limiter {
	l := newLimiter(store, slog.New(slog.DiscardHandler))
	l.now = func() time.Time { return *clock }
	return l
}

func allowed(t *testing.T, l *limiter, hard int64, requests int) int {
	t.Helper()
	n := 0
	for range requests {
		if l.take(t.Context(), tenant.RateLimited{Tenant: "one"}, hard).ok {
			n++
		}
	}
	return n
}

func TestLimiterLeasesInBatches(t *testing.T) {
	t.Parallel()
	clock := noon
	store := &fakeRates{reset: 30 * time.Second}
	l := newTestLimiter(store, &clock)
	for i := range 600 {
		v := l.take(t.Context(), tenant.RateLimited{Tenant: "one"}, 600)
		if want := int64(600 - i - 1); !v.ok || v.remaining != want || v.reset != 30*time.Second {
			t.Fatalf("request %d: %+v, want %d remaining", i, v, want)
		}
	}
	if store.trips > 80 {
		t.Errorf("%d trips for 600 requests", store.trips)
	}
	before := store.trips
	if n := allowed(t, l, 600, 1000); n != 0 || store.trips != before {
		t.Errorf("%d allowed beyond the limit, with %d trips", n, store.trips-before)
	}
	if n := allowed(t, l, 610, 1000); n != 10 {
		t.Errorf("%d allowed after the limit was raised by 10", n)
	}
	clock, store.used = clock.Add(30*time.Second), 0
	if n := allowed(t, l, 5, 10); n != 5 {
		t.Errorf("%d of 5 allowed in the next minute", n)
	}
	if n := allowed(t, l, 0, 10); n != 0 {
		t.Errorf("%d allowed with a limit of 0", n)
	}
}

// An unavailable store does not fail requests, and is queried once a minute.
func TestLimiterWithoutItsStore(t *testing.T) {
	t.Parallel()
	clock := noon.Truncate(time.Minute)
	store := &fakeRates{reset: 20 * time.Second}
	l := newTestLimiter(store, &clock)
	if n := allowed(t, l, 160, 5); n != 5 {
		t.Fatalf("%d of 5 allowed", n)
	}
	store.fails = errors.New("unavailable")
	if n := allowed(t, l, 160, 1000); n != 155 || store.trips != 2 {
		t.Errorf("%d more allowed with %d trips, want 155 with 2", n, store.trips)
	}
	clock = clock.Add(20 * time.Second)
	if n := allowed(t, l, 160, 1000); n != 160 || store.trips != 3 {
		t.Errorf("%d allowed in a minute without the store, %d trips", n, store.trips)
	}
	store.fails = nil
	clock = clock.Add(time.Minute)
	if allowed(t, l, 160, 1); store.trips != 4 {
		t.Errorf("%d trips when the store is back", store.trips)
	}
}

func TestLimiterEvictsExpiredWindows(t *testing.T) {
	t.Parallel()
	clock := noon
	l := newTestLimiter(nil, &clock)
	for i := range maxWindows {
		l.take(t.Context(), tenant.RateLimited{Tenant: tenant.ID(fmt.Sprint(i))}, 10)
	}
	clock = clock.Add(time.Minute)
	l.take(t.Context(), tenant.RateLimited{Tenant: "one more"}, 10)
	if n := len(l.windows); n != 1 {
		t.Errorf("%d tenants are remembered", n)
	}
}

func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	clock := noon.Truncate(time.Minute).Add(48500 * time.Millisecond)
	h.limiter.now = func() time.Time { return clock }
	few := tenant.Quota{RequestsPerMinute: 3}
	one := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "few", User: 21}, Quota: few})
	two := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "few", User: 22}, Quota: few})
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
	replicas := []*limiter{newLimiter(s.db, h.Log), newLimiter(s.db, h.Log)}
	for _, r := range replicas {
		r.timeout = time.Minute // a replica that counts locally allows more
	}
	begun := time.Now().Truncate(time.Minute)
	var n atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for range hard / 2 {
				if replicas[w%2].take(t.Context(), tenant.RateLimited{Tenant: id}, hard).ok {
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
