package retrieve

import (
	"context"
	"fmt"
	"math"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// sweepPage is the number of ids of each store that are compared at a time.
const sweepPage = 5000

// Drift counts the differences between the index and the database.
type Drift struct {
	Missing  int // live units that are not in the index
	Orphaned int // index entries without a live unit
}

// Add returns the sum of d and o.
func (d Drift) Add(o Drift) Drift {
	return Drift{Missing: d.Missing + o.Missing, Orphaned: d.Orphaned + o.Orphaned}
}

// Rebuild writes all live units of the tenant to the index and removes all other
// entries. It does nothing for a tenant without a placement.
func (x *Indexer) Rebuild(ctx context.Context, t tenant.ID) error {
	w, err := x.units.GetPlacement(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get placement: %w", err)
	}
	for after := UnitID(0); ; {
		ids, err := x.units.Live(ctx, t, after, syncBatch)
		if err != nil {
			return fmt.Errorf("list live units: %w", err)
		}
		if err := x.sync(ctx, t, w, ids); err != nil {
			return err
		}
		if len(ids) < syncBatch {
			break
		}
		after = ids[len(ids)-1]
	}
	_, err = x.sweep(ctx, t, w.Current.Location, func(ids []UnitID) error { return x.sync(ctx, t, w, ids) })
	return err
}

// Sweep compares the index with the database, repairs the differences, and
// returns them. A unit whose index job has not run yet counts as missing. A
// placement that is being rebuilt is left to its job.
func (x *Indexer) Sweep(ctx context.Context, t tenant.ID) (Drift, error) {
	return x.compare(ctx, t, func(ids []UnitID) error {
		if len(ids) == 0 {
			return nil
		}
		return x.Sync(ctx, t, ids)
	})
}

// Compare returns the differences that Sweep would repair, and changes nothing.
func (x *Indexer) Compare(ctx context.Context, t tenant.ID) (Drift, error) {
	return x.compare(ctx, t, func([]UnitID) error { return nil })
}

// compare calls repair with the differences of the tenant's placement.
func (x *Indexer) compare(ctx context.Context, t tenant.ID, repair func([]UnitID) error) (Drift, error) {
	w, err := x.units.GetPlacement(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return Drift{}, nil
	}
	if err != nil {
		return Drift{}, fmt.Errorf("get placement: %w", err)
	}
	if w.Rebuilding() && w.Writable() {
		return Drift{}, nil
	}
	return x.sweep(ctx, t, w.Current.Location, repair)
}

// sweep compares a location with the database; repair settles the differences.
func (x *Indexer) sweep(ctx context.Context, t tenant.ID, p placement.Location, repair func([]UnitID) error) (Drift, error) {
	var drift Drift
	for after := UnitID(0); after < math.MaxInt64; {
		indexed, err := x.index.List(ctx, t, p, after, sweepPage)
		if err != nil {
			return drift, fmt.Errorf("list the index: %w", err)
		}
		live, err := x.units.Live(ctx, t, after, sweepPage)
		if err != nil {
			return drift, fmt.Errorf("list live units: %w", err)
		}
		// The lists can be compared up to the shorter one's last id.
		until := min(reach(indexed), reach(live))
		missing, orphaned := differ(live, indexed, until)
		drift = drift.Add(Drift{Missing: len(missing), Orphaned: len(orphaned)})
		if err := repair(append(missing, orphaned...)); err != nil { // called for each page
			return drift, fmt.Errorf("repair drift: %w", err)
		}
		after = until
	}
	return drift, nil
}

// reach returns the last id that a page covers.
func reach(page []UnitID) UnitID {
	if len(page) < sweepPage {
		return math.MaxInt64
	}
	return page[len(page)-1]
}

// differ compares two ordered lists up to an id and returns the ids in only one.
func differ(live, indexed []UnitID, until UnitID) (missing, orphaned []UnitID) {
	next := func(ids []UnitID) UnitID {
		if len(ids) == 0 || ids[0] > until {
			return math.MaxInt64
		}
		return ids[0]
	}
	for {
		l, i := next(live), next(indexed)
		switch {
		case min(l, i) == math.MaxInt64:
			return missing, orphaned
		case l == i:
			live, indexed = live[1:], indexed[1:]
		case l < i:
			missing = append(missing, l)
			live = live[1:]
		default:
			orphaned = append(orphaned, i)
			indexed = indexed[1:]
		}
	}
}
