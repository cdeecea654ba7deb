package postgres

import (
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxCachedVectors is the maximum size of all vectors in the cache, in bytes.
	maxCachedVectors = 16 << 20
	// vectorsExpire is how long the vectors of a user are kept after their last use.
	vectorsExpire = time.Minute
)

// vectorCache holds the vectors of recently active users. The caller validates them against the database before each
// use (addedVectors). Vectors never change: an edit creates new units.
type vectorCache struct {
	mu    sync.Mutex
	users map[vectorKey]*cachedVectors
	size  int // of all vectors, in bytes
}

func newVectorCache() *vectorCache { return &vectorCache{users: map[vectorKey]*cachedVectors{}} }

// vectorKey identifies the vectors of a user's units of a kind.
type vectorKey struct {
	tenant.Scope
	kind       retrieve.Kind
	generation placement.GenerationID
}

// cachedVectors are all vectors of a user. The storedVectors are immutable.
type cachedVectors struct {
	*storedVectors
	expiry *time.Timer
}

// storedVectors are vectors of units as the database contains them, one after another.
type storedVectors struct {
	ids     []retrieve.UnitID
	content []byte

	// Of the units that were read for the cache:
	missing []retrieve.UnitID // those without a vector
	count   int               // of all, with and without a vector
	last    retrieve.UnitID   // the highest id
	hash    int64             // of all ids
}

// score returns the cosine of each unit. All vectors have the same length, that of their generation.
func (v *storedVectors) score(vector []float32) []retrieve.Hit {
	hits, asked := make([]retrieve.Hit, len(v.ids)), rebased(vector)
	for i, id := range v.ids {
		size := len(v.content) / len(v.ids)
		hits[i] = retrieve.Hit{ID: id, Score: asked.dotHalf(v.content[i*size : (i+1)*size])}
	}
	return hits
}

// size returns the allocated bytes.
func (v *storedVectors) size() int { return cap(v.content) + 8*(cap(v.ids)+cap(v.missing)) }

// get returns the cached vectors of a user, empty if there are none. It returns false if there is no space for another user.
func (c *vectorCache) get(key vectorKey) (*storedVectors, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached, ok := c.users[key]; ok {
		cached.expiry.Reset(vectorsExpire)
		return cached.storedVectors, true
	}
	return &storedVectors{}, c.size < maxCachedVectors
}

// add returns the known vectors and the added ones, and caches them if there is space. added.missing replaces known.missing.
func (c *vectorCache) add(key vectorKey, known, added *storedVectors) *storedVectors {
	if added.count == 0 && len(added.ids) == 0 {
		return known
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.users[key]
	all := *known
	if cached == nil || cached.storedVectors != known {
		// Another search may have appended to the same array.
		all.ids, all.content = slices.Clip(all.ids), slices.Clip(all.content)
	}
	all.ids, all.content, all.missing = append(all.ids, added.ids...), append(all.content, added.content...), slices.Clone(added.missing)
	all.count, all.last, all.hash = all.count+added.count, max(all.last, added.last), all.hash^added.hash
	used := c.size
	if cached != nil {
		used -= cached.size()
	}
	switch {
	case used+all.size() > maxCachedVectors:
		c.drop(key)
	case cached != nil:
		c.size, cached.storedVectors = used+all.size(), &all
	default:
		c.size = used + all.size()
		c.users[key] = &cachedVectors{&all, time.AfterFunc(vectorsExpire, func() { c.remove(key) })}
	}
	return &all
}

// remove deletes the vectors of a user.
func (c *vectorCache) remove(key vectorKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

// drop is remove. The caller holds the lock.
func (c *vectorCache) drop(key vectorKey) {
	if cached, ok := c.users[key]; ok {
		cached.expiry.Stop()
		c.size -= cached.size()
		delete(c.users, key)
	}
}
