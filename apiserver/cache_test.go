package apiserver

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestCache(t *testing.T) {
	t.Parallel()
	hash, other := tenant.HashSecret("a"), tenant.HashSecret("b")
	who := tenant.Identity{Scope: tenant.Scope{Tenant: "one", User: 1}}
	tests := map[string]struct {
		reason string
		// between happens between the query and its fill, after once it is there.
		between, after func(c *Cache, now *time.Time)
		who            tenant.Identity
		want           bool
	}{
		"Hit":           {"what was read is remembered", nil, nil, who, true},
		"Dropped":       {"a revoked token is forgotten", nil, func(c *Cache, _ *time.Time) { c.Drop(hash) }, who, false},
		"OtherDropped":  {"others stay", nil, func(c *Cache, _ *time.Time) { c.Drop(other) }, who, true},
		"Late":          {"what may have been read before a revocation is not kept", func(c *Cache, _ *time.Time) { c.Drop(hash) }, nil, who, false},
		"LateClear":     {"nor before a clearing", func(c *Cache, _ *time.Time) { c.Clear() }, nil, who, false},
		"Cleared":       {"clearing forgets everything", nil, func(c *Cache, _ *time.Time) { c.Clear() }, who, false},
		"Tenant":        {"a tenant's tokens go together", nil, func(c *Cache, _ *time.Time) { c.DropTenant("one") }, who, false},
		"OtherTenant":   {"another tenant's stay", nil, func(c *Cache, _ *time.Time) { c.DropTenant("two") }, who, true},
		"User":          {"a user's tokens go together", nil, func(c *Cache, _ *time.Time) { c.DropUser(tenant.Scope{Tenant: "one", User: 1}) }, who, false},
		"OtherUser":     {"another user's stay", nil, func(c *Cache, _ *time.Time) { c.DropUser(tenant.Scope{Tenant: "one", User: 2}) }, who, true},
		"SameNumber":    {"and another tenant's", nil, func(c *Cache, _ *time.Time) { c.DropUser(tenant.Scope{Tenant: "two", User: 1}) }, who, true},
		"LateUser":      {"nor what may have been read before", func(c *Cache, _ *time.Time) { c.DropUser(tenant.Scope{Tenant: "one", User: 1}) }, nil, who, false},
		"Bypass":        {"nothing is cached while revocations cannot be received", func(c *Cache, _ *time.Time) { c.SetBypass(true) }, nil, who, false},
		"BypassEnds":    {"what was there before is not believed after", nil, func(c *Cache, _ *time.Time) { c.SetBypass(true); c.SetBypass(false) }, who, false},
		"Fresh":         {"just within its time", nil, func(_ *Cache, now *time.Time) { *now = now.Add(cacheTTL - 1) }, who, true},
		"Old":           {"the belt: asked again after a while", nil, func(_ *Cache, now *time.Time) { *now = now.Add(cacheTTL) }, who, false},
		"OverlapEnds":   {"an old token dies when its overlap ends", nil, func(_ *Cache, now *time.Time) { *now = now.Add(time.Second) }, tenant.Identity{ExpiresAt: noon.Add(time.Second)}, false},
		"OverlapGoesOn": {"and not before", nil, func(_ *Cache, now *time.Time) { *now = now.Add(time.Second - 1) }, tenant.Identity{ExpiresAt: noon.Add(time.Second)}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := noon
			c := NewCache()
			c.now = func() time.Time { return now }
			_, epoch, ok := c.get(hash)
			if ok {
				t.Fatal("an empty cache knows the token")
			}
			if tc.between != nil {
				tc.between(c, &now)
			}
			c.put(hash, tc.who, epoch)
			if tc.after != nil {
				tc.after(c, &now)
			}
			if _, _, ok := c.get(hash); ok != tc.want {
				t.Errorf("%s: known is %v, want %v", tc.reason, ok, tc.want)
			}
			lookalike := hash
			lookalike[31]++
			if _, _, ok := c.get(lookalike); ok {
				t.Error("a hash that only begins alike is known")
			}
		})
	}
}

// Requests with the same token cause one query; unknown tokens are not cached.
func TestIdentityIsCached(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for range 3 {
		h.ok(t, h.alice, "GET", "/api/chat-history/count", "")
	}
	if n := h.stores.identified(); n != 1 {
		t.Errorf("%d queries for three requests, want 1", n)
	}
	hash := tenant.HashSecret(h.alice)
	h.stores.forget(hash)
	h.Cache.Drop(hash)
	for range 2 {
		if got := h.call(t, h.alice, "GET", "/api/chat-history/count", ""); got.status != 401 {
			t.Errorf("a revoked token: %d", got.status)
		}
	}
	if n := h.stores.identified(); n != 3 {
		t.Errorf("%d queries, want one for each request of an unknown token", n)
	}
}

// An unavailable database does not make a token invalid.
func TestIdentifyWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.stores.fail(fault.New(fault.Unavailable, "the database is unavailable; try again"))
	got := h.call(t, h.alice, "GET", "/api/chat-history/count", "")
	if got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
	}
}
