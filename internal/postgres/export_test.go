package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// What tests need of the transactions.
var (
	ReadScope  = (*DB).readScope
	WriteScope = (*DB).writeScope
	InTx       = (*DB).inTx

	SelectMemories  = selectMemories
	PageLimit       = pageLimit
	WithGenericPlan = withGenericPlan
	AddedUnits      = addedMemories
	RegisterLists   = registerLists
)

// Statements whose plans are tested.
const (
	MemoriesByID = memoriesByID
	PromoteJobs  = promoteJobs
	PromotePlan  = promotePlan
	Unconfirmed  = unconfirmedUnits
)

// LockTimeout is how long a migration waits for the lock of a table.
const LockTimeout = lockTimeout

// Maximum numbers of imports, and of their parts, that a transaction of a purge deletes.
const (
	PurgeImports = purgeImportsBatch
	PurgeParts   = purgePartsBatch
)

// Limits of the cache.
const (
	MaxCachedUnits = maxCachedUnits
	MaxCachedText  = maxCachedText
	RecentIDs      = recentIDs
	Growth         = growth
)

// FillCache leaves so many bytes of space in the cache, until the function that it returns is called.
func (d *DB) FillCache(left int) (empty func()) {
	d.units.mu.Lock()
	defer d.units.mu.Unlock()
	free := maxCacheSize - d.units.size - left
	d.units.size += free
	return func() {
		d.units.mu.Lock()
		defer d.units.mu.Unlock()
		d.units.size -= free
	}
}

// CacheSize returns the size of all units in the cache, in bytes.
func (d *DB) CacheSize() int {
	d.units.mu.Lock()
	defer d.units.mu.Unlock()
	return d.units.size
}

// AwaitUnits waits until no units are being loaded into the cache.
func (d *DB) AwaitUnits(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(loadTimeout); ; {
		d.units.mu.Lock()
		loading := d.units.loading
		d.units.mu.Unlock()
		if !loading {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("units are still being loaded")
		}
		<-time.After(5 * time.Millisecond)
	}
}

// StoreUnits stores the units of a user in the format of the cache, if there are at least so many.
func (d *DB) StoreUnits(ctx context.Context, scope tenant.Scope, kind retrieve.Kind, generation placement.GenerationID, least int) error {
	return d.storeUnits(ctx, unitKey{scope, kind, generation}, least)
}

// AwaitStored waits until no units wait to be stored.
func (d *DB) AwaitStored(t testing.TB) {
	t.Helper()
	waiting := func() bool {
		d.units.mu.Lock()
		defer d.units.mu.Unlock()
		return len(d.units.waiting) > 0
	}
	for deadline := time.Now().Add(storeTimeout); waiting(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("units are still being stored")
		}
	}
}

// MaxStoring is the maximum number of users whose units wait to be stored.
const MaxStoring = maxStoring

// StoresUnits reports for each of the users, who search one after the other, whether the search stores their units. None are stored meanwhile.
func StoresUnits(users ...tenant.UserID) []bool {
	c := newUnitCache()
	return collect(users, func(id tenant.UserID) bool { return c.wait(unitKey{Scope: tenant.Scope{User: id}}) })
}

// ForgetUnits empties the cache.
func (d *DB) ForgetUnits() {
	d.units.mu.Lock()
	defer d.units.mu.Unlock()
	for key := range d.units.users {
		d.units.drop(key)
	}
}

// StoredIDs returns the ids in the content of a row of cached_units.
func StoredIDs(content []byte) ([]retrieve.UnitID, error) {
	p, err := parsePart(content)
	return p.ids, err
}

// StoredUnits returns how many units a search of a user who is not cached reads in the format of the cache, or -1 if it fails.
func (d *DB) StoredUnits(ctx context.Context, scope tenant.Scope, kind retrieve.Kind) int {
	v, _, err := d.readStored(ctx, unitKey{scope, kind, 0})
	if err != nil {
		return -1
	}
	return v.count
}
