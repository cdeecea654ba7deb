package postgres

import (
	"testing"
	"time"
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
)

// Statements whose plans are tested.
const (
	MemoriesByID = memoriesByID
	PromoteJobs  = promoteJobs
	PromotePlan  = promotePlan
)

// Limits of the cache.
const (
	MaxCachedUnits = maxCachedUnits
	MaxCachedText  = maxCachedText
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
