package postgres

import (
	"math"
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
	// maxCachedUnits is the maximum number of a user's units in the cache, 10 MB with 384 dimensions.
	maxCachedUnits = 25_000
	// vectorsExpire is how long the vectors of a user are kept after their last use.
	vectorsExpire = time.Minute
)

// vectorCache holds the vectors of recently active users. The caller validates them against the database before each
// use (addedVectors). Vectors never change: an edit creates new units.
type vectorCache struct {
	mu    sync.Mutex
	users map[vectorKey]*cachedVectors
	size  int // of all vectors, in bytes

	// misses counts the searches of users that have too many units to be read at once, and are not cached, for up to vectorsExpire.
	misses  map[vectorKey]int
	counted time.Time // since when
	loading bool
}

func newVectorCache() *vectorCache {
	return &vectorCache{users: map[vectorKey]*cachedVectors{}, misses: map[vectorKey]int{}}
}

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

// get returns the cached vectors of a user, or nil if there are none.
func (c *vectorCache) get(key vectorKey) *storedVectors {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.users[key]
	if !ok {
		return nil
	}
	cached.expiry.Reset(vectorsExpire)
	return cached.storedVectors
}

// admits reports whether there is space for another user.
func (c *vectorCache) admits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size < maxCachedVectors
}

// set caches the vectors of a user, which replace the known ones, if there is space.
func (c *vectorCache) set(key vectorKey, v *storedVectors) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.size
	cached := c.users[key]
	if cached != nil {
		used -= cached.size()
	}
	switch {
	case used+v.size() > maxCachedVectors:
		c.drop(key)
	case cached != nil:
		c.size, cached.storedVectors = used+v.size(), v
	default:
		c.size = used + v.size()
		c.users[key] = &cachedVectors{v, time.AfterFunc(vectorsExpire, func() { c.remove(key) })}
	}
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

// missed counts a search of a user with many units that are not cached. It returns true if the caller should load them, and
// then call loaded: the user is active, no other user is being loaded, and there is space.
func (c *vectorCache) missed(key vectorKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.counted) > vectorsExpire {
		clear(c.misses)
		c.counted = now
	}
	c.misses[key]++
	if c.misses[key] < 2 || c.loading || c.size >= maxCachedVectors {
		return false
	}
	c.misses[key], c.loading = math.MinInt, true // not again soon: the user may have too many
	return true
}

// loaded ends a load.
func (c *vectorCache) loaded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loading = false
}

// storedVectors are the vectors of a user's units.
type storedVectors struct {
	parts   []vectorPart
	deleted map[retrieve.UnitID]bool // units in parts that no longer exist

	// Of the units that were read for the cache:
	missing []retrieve.UnitID // those without a vector
	count   int               // of all that exist, with and without a vector
	last    retrieve.UnitID   // the highest id
	hash    int64             // of their ids
}

// vectorPart is a number of coded vectors (appendCode), one after another.
type vectorPart struct {
	ids     []retrieve.UnitID
	content []byte
}

// with returns these vectors and the added ones. added.missing replaces v.missing.
func (v *storedVectors) with(added *vectorPart, read readUnits) *storedVectors {
	if read.count == 0 && len(added.ids) == 0 {
		return v
	}
	all := *v
	all.missing, all.count, all.last, all.hash = slices.Clone(read.missing), v.count+read.count, max(v.last, read.last), v.hash^read.hash
	if len(added.ids) > 0 {
		all.parts = merged(append(slices.Clone(v.parts), *added))
	}
	return &all
}

// merged returns the parts with the last ones joined in a new one, so that each has more than twice as many units as
// the next. The last part may be reused by the caller.
func merged(parts []vectorPart) []vectorPart {
	first := len(parts) - 1
	n := len(parts[first].ids)
	for first > 0 && len(parts[first-1].ids) <= 2*n {
		first--
		n += len(parts[first].ids)
	}
	size := 0
	for _, p := range parts[first:] {
		size += len(p.content)
	}
	joined := vectorPart{make([]retrieve.UnitID, 0, n), make([]byte, 0, size)}
	for _, p := range parts[first:] {
		joined.ids, joined.content = append(joined.ids, p.ids...), append(joined.content, p.content...)
	}
	return append(parts[:first], joined)
}

// maxDeleted is the maximum share of deleted units in parts.
const maxDeleted = 0.25

// among returns the vectors if exactly the units with these ids exist, in order, up to the highest known one. Units that were not known are
// missing then. hash is that of the ids.
func (v *storedVectors) among(existing []retrieve.UnitID, hash int64) *storedVectors {
	out := &storedVectors{parts: v.parts, deleted: map[retrieve.UnitID]bool{}, count: len(existing), last: v.last, hash: hash}
	found, n := make([]bool, len(existing)), 0
	for _, p := range v.parts {
		n += len(p.ids)
		for _, id := range p.ids {
			if i, ok := slices.BinarySearch(existing, id); ok {
				found[i] = true
			} else {
				out.deleted[id] = true
			}
		}
	}
	if float64(len(out.deleted)) > maxDeleted*float64(n) {
		return &storedVectors{}
	}
	for i, id := range existing {
		if !found[i] {
			out.missing = append(out.missing, id)
		}
	}
	return out
}

// parallelScores is the number of units that are scored by a goroutine.
const parallelScores = 4096

// score returns the cosine of each unit. All vectors have the same length, that of their generation.
func (v *storedVectors) score(vector []float32) []retrieve.Hit {
	n := 0
	for _, p := range v.parts {
		n += len(p.ids)
	}
	hits, asked := make([]retrieve.Hit, n), codeQuery(vector)
	var wait sync.WaitGroup
	start := 0
	for _, p := range v.parts {
		size := len(p.content) / max(len(p.ids), 1)
		for from := 0; from < len(p.ids); from += parallelScores {
			to := min(from+parallelScores, len(p.ids))
			part, out := vectorPart{p.ids[from:to], p.content[from*size : to*size]}, hits[start+from:start+to]
			if n <= parallelScores {
				part.score(asked, out)
			} else {
				wait.Go(func() { part.score(asked, out) })
			}
		}
		start += len(p.ids)
	}
	wait.Wait()
	if len(v.deleted) == 0 {
		return hits
	}
	return slices.DeleteFunc(hits, func(h retrieve.Hit) bool { return v.deleted[h.ID] })
}

func (p vectorPart) score(asked codedQuery, out []retrieve.Hit) {
	size := len(p.content) / len(p.ids)
	for i, id := range p.ids {
		out[i] = retrieve.Hit{ID: id, Score: asked.dot(p.content[i*size : (i+1)*size])}
	}
}

// size returns the allocated bytes.
func (v *storedVectors) size() int {
	size := 8*cap(v.missing) + 32*len(v.deleted)
	for _, p := range v.parts {
		size += cap(p.content) + 8*cap(p.ids)
	}
	return size
}
