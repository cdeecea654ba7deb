package postgres

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxCacheSize is the maximum size of all units in the cache, in bytes.
	maxCacheSize = 16 << 20
	// maxCachedUnits is the maximum number of a user's units in the cache, which need 10 MB with 384 dimensions, and 2 to 6 MB for their words. Texts need the rest.
	maxCachedUnits = 25_000
	// unitsExpire is how long the units of a user are kept after their last use.
	unitsExpire = time.Minute
)

// unitCache holds the vectors, words and texts of the units of recently active users. The caller validates them against the database before each
// use (addedUnits), unless they were validated recently enough for it. Units never change: an edit creates new ones.
type unitCache struct {
	mu    sync.Mutex
	users map[unitKey]*cachedUnits
	size  int // of all units, in bytes

	// misses counts the searches of users that have too many units to be read at once, and are not cached, for up to unitsExpire.
	misses  map[unitKey]int
	counted time.Time // since when
	loading bool

	storing sync.Mutex       // held while units of a user are stored in the database
	waiting map[unitKey]bool // users whose units are being stored or will be
	failing atomic.Bool      // the last attempt to store units failed
}

func newUnitCache() *unitCache {
	return &unitCache{users: map[unitKey]*cachedUnits{}, misses: map[unitKey]int{}, waiting: map[unitKey]bool{}}
}

// unitKey identifies a user's units of a kind, with the vectors of a generation.
type unitKey struct {
	tenant.Scope
	kind       retrieve.Kind
	generation placement.GenerationID
}

// cachedUnits are all units of a user. The storedUnits are immutable.
type cachedUnits struct {
	*storedUnits
	validated time.Time // when they were those in the database, apart from units that were added since
	expiry    *time.Timer
}

// get returns the cached units of a user and when they were validated, or nil if there are none.
func (c *unitCache) get(key unitKey) (v *storedUnits, validated time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.users[key]
	if !ok {
		return nil, time.Time{}
	}
	cached.expiry.Reset(unitsExpire)
	return cached.storedUnits, cached.validated
}

// fits reports whether there is space for the units of a user, which replace the known ones.
func (c *unitCache) fits(key unitKey, size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sizeOfOthers(key)+size <= maxCacheSize
}

// sizeOfOthers returns the size of all units but those of a user. The caller holds the lock.
func (c *unitCache) sizeOfOthers(key unitKey) int {
	if cached, ok := c.users[key]; ok {
		return c.size - cached.size()
	}
	return c.size
}

// set caches the units of a user, which replace the known ones, if there is space.
func (c *unitCache) set(key unitKey, v *storedUnits, validated time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, cached := c.sizeOfOthers(key), c.users[key]
	switch {
	case used+v.size() > maxCacheSize:
		c.drop(key)
	case cached != nil:
		c.size, cached.storedUnits, cached.validated = used+v.size(), v, validated
	default:
		c.size = used + v.size()
		c.users[key] = &cachedUnits{v, validated, time.AfterFunc(unitsExpire, func() { c.remove(key) })}
	}
}

// remove deletes the units of a user.
func (c *unitCache) remove(key unitKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

// drop is remove. The caller holds the lock.
func (c *unitCache) drop(key unitKey) {
	if cached, ok := c.users[key]; ok {
		cached.expiry.Stop()
		c.size -= cached.size()
		delete(c.users, key)
	}
}

// missed counts a search of a user with many units that are not cached. It returns true if the caller should load them, and
// then call loaded: the user is active, and no other user is being loaded.
func (c *unitCache) missed(key unitKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.counted) > unitsExpire {
		clear(c.misses)
		c.counted = now
	}
	c.misses[key]++
	if c.misses[key] < 2 || c.loading {
		return false
	}
	c.misses[key], c.loading = math.MinInt, true // not again soon: the user may have too many
	return true
}

// loaded ends a load.
func (c *unitCache) loaded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loading = false
}

// wait returns true if the caller should store the units of a user, and then call stored. It returns false if they already wait to be stored, or if those of
// too many users do.
func (c *unitCache) wait(key unitKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] || len(c.waiting) == maxStoring {
		return false
	}
	c.waiting[key] = true
	return true
}

// stored ends the storing of the units of a user.
func (c *unitCache) stored(key unitKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, key)
}

// storedUnits are a user's units.
type storedUnits struct {
	parts   []unitPart               // those with a vector
	deleted map[retrieve.UnitID]bool // units in parts that no longer exist

	// Of the units that were read for the cache:
	missing unitPart        // those without a vector
	count   int             // of all that exist, with and without a vector
	last    retrieve.UnitID // the highest id
	hash    int64           // of their ids
}

// unitPart is a number of units with their coded vectors (appendCode), one after another, their words, and the texts of units of memories.
type unitPart struct {
	ids     []retrieve.UnitID
	content []byte // nothing for units without a vector
	words   wordIndex
	texts   unitTexts
}

// unitList collects units for a part.
type unitList struct {
	ids     []retrieve.UnitID
	content []byte
	words   wordList
	texts   unitTexts
}

// size returns the maximum size of the units in a part, in bytes.
func (l *unitList) size() int {
	return len(l.content) + 8*len(l.ids) + 12*len(l.words.entries) + 2*len(l.words.lengths) + l.texts.length() + partSize
}

// leastSize returns the size of the units in a part without the distinct lexemes, in bytes.
func (l *unitList) leastSize() int {
	return len(l.content) + 8*len(l.ids) + 4*len(l.words.entries) + 2*len(l.words.lengths) + l.texts.length() + partSize
}

func (l *unitList) reset() {
	l.ids, l.content = l.ids[:0], l.content[:0]
	l.words.reset()
	l.texts.reset()
}

// addPart adds the units of a part.
func (l *unitList) addPart(p *unitPart) {
	l.ids, l.content = append(l.ids, p.ids...), append(l.content, p.content...)
	l.words.addIndex(&p.words)
	l.texts.addAll(&p.texts)
}

// part returns the units. It keeps nothing of the list, which may be reused.
func (l *unitList) part() unitPart {
	return unitPart{slices.Clone(l.ids), slices.Clone(l.content), l.words.index(), l.texts.clone()}
}

// countAbove returns the number of existing units with higher ids.
func (v *storedUnits) countAbove(id retrieve.UnitID) (n int) {
	if id == 0 {
		return v.count
	}
	count := func(ids []retrieve.UnitID) {
		for _, known := range ids {
			if known > id && !v.deleted[known] {
				n++
			}
		}
	}
	for _, p := range v.parts {
		count(p.ids)
	}
	count(v.missing.ids)
	return n
}

// changedBy reports whether the units that were read differ from these.
func (v *storedUnits) changedBy(read *readUnits) bool {
	return read.count > 0 || len(read.added.ids) > 0 || len(v.missing.words.lengths) != len(v.missing.ids)
}

// sizeWith returns the maximum size of these units with the ones that were read, in bytes.
func (v *storedUnits) sizeWith(read *readUnits) int {
	if !v.changedBy(read) {
		return v.size()
	}
	return v.size() - v.missing.size() + read.added.size() + read.missing.size()
}

// with returns these units and the ones that were read. read.missing replaces v.missing.
func (v *storedUnits) with(read *readUnits) *storedUnits {
	if !v.changedBy(read) {
		return v
	}
	all := *v
	all.missing, all.count, all.last, all.hash = read.missing.part(), v.count+read.count, max(v.last, read.last), v.hash^read.hash
	if len(read.added.ids) > 0 {
		all.parts = merged(v.parts, &read.added)
	}
	return &all
}

// merged returns the parts and the added units. The last parts are joined with these, so that each part has more than twice as many units as
// the next.
func merged(parts []unitPart, added *unitList) []unitPart {
	first, n := len(parts), len(added.ids)
	for first > 0 && len(parts[first-1].ids) <= 2*n {
		first--
		n += len(parts[first].ids)
	}
	for i := range parts[first:] {
		added.addPart(&parts[first+i])
	}
	return append(slices.Clone(parts[:first]), added.part())
}

// maxDeleted is the maximum share of deleted units in parts.
const maxDeleted = 0.25

// among returns the units if exactly those with these ids exist, in order, up to the highest known one. Those that were not known have
// neither a vector nor words then. hash is that of the ids.
func (v *storedUnits) among(existing []retrieve.UnitID, hash int64) *storedUnits {
	out := &storedUnits{parts: v.parts, deleted: map[retrieve.UnitID]bool{}, count: len(existing), last: v.last, hash: hash}
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
		return &storedUnits{}
	}
	for i, id := range existing {
		if !found[i] {
			out.missing.ids = append(out.missing.ids, id)
		}
	}
	return out
}

// parallelScores is the number of units that are scored by a goroutine.
const parallelScores = 1024

// score returns the cosine of each unit. All vectors have the same length, that of their generation.
func (v *storedUnits) score(vector []float32) []retrieve.Hit {
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
			part, out := unitPart{ids: p.ids[from:to], content: p.content[from*size : to*size]}, hits[start+from:start+to]
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

func (p unitPart) score(asked codedQuery, out []retrieve.Hit) {
	size := len(p.content) / len(p.ids)
	for i, id := range p.ids {
		out[i] = retrieve.Hit{ID: id, Score: asked.dot(p.content[i*size : (i+1)*size])}
	}
}

// The sizes of a user and of a part without units, in bytes, rounded up.
const (
	userSize = 512
	partSize = 256
)

// size returns the allocated bytes.
func (v *storedUnits) size() int {
	size := userSize + v.missing.size() + 32*len(v.deleted)
	for i := range v.parts {
		size += v.parts[i].size()
	}
	return size
}

func (p *unitPart) size() int {
	return partSize + cap(p.content) + 8*cap(p.ids) + p.words.size() + p.texts.size()
}
