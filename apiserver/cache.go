package apiserver

import (
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// cacheTTL is a belt beside the notifications: the longest an identity is
	// believed without asking again.
	cacheTTL = 30 * time.Second
	// cacheSize bounds the cache's memory; a full one is emptied.
	cacheSize = 100000
)

// Cache remembers whom tokens belong to, so that a request costs no query.
// Only tokens that were found are in it. Whoever listens to the database's
// notifications drops what changed; a fill that began before a drop is not
// kept, as it may have read what was there before. Safe for concurrent use.
type Cache struct {
	now func() time.Time
	ttl time.Duration

	hits, misses atomic.Int64

	mu      sync.RWMutex
	epoch   uint64 // raised by every drop
	bypass  bool
	entries map[cacheKey]cacheEntry
}

// cacheKey is a part of a hash only; the rest is compared in constant time.
type cacheKey [8]byte

type cacheEntry struct {
	hash     tenant.Hash
	identity tenant.Identity
	until    time.Time
}

// NewCache makes an empty cache.
func NewCache() *Cache { return NewCacheTTL(cacheTTL) }

// NewCacheTTL returns an empty cache whose entries expire after ttl unless a
// notification drops them.
func NewCacheTTL(ttl time.Duration) *Cache {
	return &Cache{now: time.Now, ttl: ttl, entries: make(map[cacheKey]cacheEntry)}
}

// Drop forgets a token.
func (c *Cache) Drop(h tenant.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.entries, keyOf(h))
}

// DropTenant forgets all tokens of a tenant, whose quota, placement or
// suspension changed.
func (c *Cache) DropTenant(id tenant.ID) {
	c.drop(func(who tenant.Identity) bool { return who.Tenant == id })
}

// DropUser forgets all tokens of a user, some of which have ended.
func (c *Cache) DropUser(scope tenant.Scope) {
	c.drop(func(id tenant.Identity) bool { return id.Scope == scope })
}

// drop forgets the tokens of those that are meant.
func (c *Cache) drop(meant func(tenant.Identity) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for k, e := range c.entries {
		if meant(e.identity) {
			delete(c.entries, k)
		}
	}
}

// Clear forgets everything, for example after notifications may have been missed.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

// SetBypass turns the cache off while notifications cannot be heard, and on
// again. Either way it is empty afterwards.
func (c *Cache) SetBypass(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bypass = on
	c.clear()
}

func (c *Cache) clear() {
	c.epoch++
	c.entries = make(map[cacheKey]cacheEntry)
}

// get returns a token's identity if it is known, and otherwise the epoch that
// put must be given with what the store answers.
func (c *Cache) get(h tenant.Hash) (id tenant.Identity, epoch uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, found := c.entries[keyOf(h)]
	if !found || subtle.ConstantTimeCompare(e.hash[:], h[:]) != 1 || !c.now().Before(e.until) {
		c.misses.Add(1)
		return tenant.Identity{}, c.epoch, false
	}
	c.hits.Add(1)
	return e.identity, c.epoch, true
}

// put remembers an identity that was read after epoch was.
func (c *Cache) put(h tenant.Hash, id tenant.Identity, epoch uint64) {
	until := c.now().Add(c.ttl)
	if !id.ExpiresAt.IsZero() && id.ExpiresAt.Before(until) {
		until = id.ExpiresAt
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bypass || epoch != c.epoch {
		return
	}
	if len(c.entries) >= cacheSize {
		c.clear()
	}
	c.entries[keyOf(h)] = cacheEntry{hash: h, identity: id, until: until}
}

func keyOf(h tenant.Hash) cacheKey { return cacheKey(h[:8]) }
