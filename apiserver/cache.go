package apiserver

import (
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// cacheTTL bounds the age of an entry in case a notification is lost.
	cacheTTL = 30 * time.Second
	// cacheSize bounds the number of entries; a full cache is cleared.
	cacheSize = 100000
)

// Cache maps token hashes to identities, so that most requests need no query. It
// holds only valid tokens. The listener for database notifications drops changed
// entries; a lookup that started before a drop is not stored, because it may
// have read the old state. Cache is safe for concurrent use.
type Cache struct {
	now func() time.Time
	ttl time.Duration

	hits, misses atomic.Int64

	mu      sync.RWMutex
	epoch   uint64 // incremented by every drop
	bypass  bool
	entries map[cacheKey]cacheEntry
}

// cacheKey is a prefix of the hash; the full hash is compared in constant time.
type cacheKey [8]byte

type cacheEntry struct {
	hash     tenant.Hash
	identity tenant.Identity
	until    time.Time
}

// NewCache returns an empty cache.
func NewCache() *Cache { return NewCacheTTL(cacheTTL) }

// NewCacheTTL returns an empty cache whose entries expire after ttl unless a
// notification drops them.
func NewCacheTTL(ttl time.Duration) *Cache {
	return &Cache{now: time.Now, ttl: ttl, entries: make(map[cacheKey]cacheEntry)}
}

// Drop removes a token.
func (c *Cache) Drop(h tenant.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.entries, keyOf(h))
}

// DropTenant removes all tokens of a tenant whose quota, placement or suspension
// changed.
func (c *Cache) DropTenant(id tenant.ID) {
	c.drop(func(who tenant.Identity) bool { return who.Tenant == id })
}

// DropUser removes all tokens of a user.
func (c *Cache) DropUser(scope tenant.Scope) {
	c.drop(func(id tenant.Identity) bool { return id.Scope == scope })
}

// drop removes the entries of matching identities.
func (c *Cache) drop(match func(tenant.Identity) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for k, e := range c.entries {
		if match(e.identity) {
			delete(c.entries, k)
		}
	}
}

// Clear removes all entries, for example after missed notifications.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

// SetBypass disables the cache while notifications cannot be received, or enables
// it again. Both clear it.
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

// get returns the cached identity of a token, or the epoch to pass to put after
// looking it up.
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

// put stores an identity that was looked up at the epoch returned by get.
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
