package indexing

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// sweepPage is the number of ids of each store that are compared at a time.
const sweepPage = 5000

// SweepState is how far the sweep of a tenant has proceeded.
type SweepState struct {
	Tenant tenant.ID
	Cursor retrieve.UnitID // the last unit compared; 0 before the first
	// Drifted is set once the sweep has found unexpected drift.
	Drifted bool
}

// Drift counts the differences between the index and the database.
type Drift struct {
	Missing  int // live units that are not in the index, or not confirmed
	Lost     int // those of the missing units that were in the index before
	Orphaned int // index entries without a live unit
}

// Add returns the sum of d and o.
func (d Drift) Add(o Drift) Drift {
	return Drift{Missing: d.Missing + o.Missing, Lost: d.Lost + o.Lost, Orphaned: d.Orphaned + o.Orphaned}
}

// Unexpected reports whether there is drift other than units whose index job has not run yet.
func (d Drift) Unexpected() bool { return d.Lost > 0 || d.Orphaned > 0 }

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
	for after := retrieve.UnitID(0); ; {
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
	_, err = x.compareAll(ctx, t, w.Current.Location, func(ids []retrieve.UnitID) error { return x.sync(ctx, t, w, ids) })
	return err
}

// Sweep compares the index with the database, repairs the differences, and
// returns them. A unit whose index job has not run yet counts as missing. A
// placement that is being rebuilt is left to its job.
func (x *Indexer) Sweep(ctx context.Context, t tenant.ID) (Drift, error) {
	return sweepAll(func(after retrieve.UnitID) (Drift, retrieve.UnitID, error) { return x.SweepPage(ctx, t, after) })
}

// Compare returns the differences that Sweep would repair, and changes nothing.
func (x *Indexer) Compare(ctx context.Context, t tenant.ID) (Drift, error) {
	return sweepAll(func(after retrieve.UnitID) (Drift, retrieve.UnitID, error) {
		return x.compare(ctx, t, after, func([]retrieve.UnitID) error { return nil })
	})
}

// SweepPage sweeps the units after an id, up to a limit. next is the id after
// which the next page begins, SweepEnd if there is none.
func (x *Indexer) SweepPage(ctx context.Context, t tenant.ID, after retrieve.UnitID) (found Drift, next retrieve.UnitID, err error) {
	return x.compare(ctx, t, after, func(ids []retrieve.UnitID) error {
		if len(ids) == 0 {
			return nil
		}
		return x.Sync(ctx, t, ids)
	})
}

// SweepEnd is greater than every id of a unit.
const SweepEnd = retrieve.UnitID(math.MaxInt64)

// sweepAll calls page until the end and returns the sum.
func sweepAll(page func(after retrieve.UnitID) (Drift, retrieve.UnitID, error)) (Drift, error) {
	var total Drift
	for after := retrieve.UnitID(0); after < SweepEnd; {
		found, next, err := page(after)
		total = total.Add(found)
		if err != nil {
			return total, err
		}
		after = next
	}
	return total, nil
}

// compare calls repair with the differences of a page of the tenant's placement, and with units that are not
// confirmed: the vector of a unit is saved after the index contains it, so a crash can leave one in the index without
// a vector.
func (x *Indexer) compare(ctx context.Context, t tenant.ID, after retrieve.UnitID, repair func([]retrieve.UnitID) error) (Drift, retrieve.UnitID, error) {
	w, err := x.units.GetPlacement(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return Drift{}, SweepEnd, nil
	}
	if err != nil {
		return Drift{}, after, fmt.Errorf("get placement: %w", err)
	}
	if w.Rebuilding() && w.Writable() {
		return Drift{}, SweepEnd, nil
	}
	var unconfirmed []retrieve.UnitID
	if w.Current.Indexed() {
		if unconfirmed, err = x.units.Unconfirmed(ctx, t, after, sweepPage); err != nil {
			return Drift{}, after, fmt.Errorf("list unconfirmed units: %w", err)
		}
	}
	return x.comparePage(ctx, t, w.Current.Location, after, unconfirmed, repair)
}

// compareAll compares a whole location with the database, like comparePage.
func (x *Indexer) compareAll(ctx context.Context, t tenant.ID, p placement.Location, repair func([]retrieve.UnitID) error) (Drift, error) {
	return sweepAll(func(after retrieve.UnitID) (Drift, retrieve.UnitID, error) {
		return x.comparePage(ctx, t, p, after, nil, repair)
	})
}

// comparePage compares a page of a location with the database; repair settles the
// differences and the units of the page among unconfirmed. In no index, the differences are the units without a vector.
func (x *Indexer) comparePage(
	ctx context.Context, t tenant.ID, p placement.Location, after retrieve.UnitID, unconfirmed []retrieve.UnitID, repair func([]retrieve.UnitID) error,
) (drift Drift, next retrieve.UnitID, err error) {
	if !p.Indexed() {
		return x.completePage(ctx, t, after, repair)
	}
	indexed, err := x.index.List(ctx, t, p, after, sweepPage)
	if err != nil {
		return drift, after, fmt.Errorf("list the index: %w", err)
	}
	live, err := x.units.Live(ctx, t, after, sweepPage)
	if err != nil {
		return drift, after, fmt.Errorf("list live units: %w", err)
	}
	// The lists can be compared up to the shorter one's last id.
	until := min(reach(indexed), reach(live))
	missing, orphaned := differ(live, indexed, until)
	drift = Drift{Missing: len(missing), Orphaned: len(orphaned)}
	if len(missing) > 0 {
		if drift.Lost, err = x.units.CountConfirmed(ctx, t, missing); err != nil {
			return drift, after, fmt.Errorf("count lost units: %w", err)
		}
	}
	if err := repair(append(missing, orphaned...)); err != nil {
		return drift, after, fmt.Errorf("repair drift: %w", err)
	}
	unconfirmed = slices.DeleteFunc(unconfirmed, func(id retrieve.UnitID) bool {
		_, settled := slices.BinarySearch(missing, id)
		return settled || id > until
	})
	switch err := repair(unconfirmed); {
	case fault.Is(err, fault.Unavailable): // a target of a migration, which the index does not need
		x.log.WarnContext(ctx, "units that the index contains cannot be confirmed", "tenant", t, "units", len(unconfirmed), "error", err)
	case err != nil:
		return drift, after, fmt.Errorf("confirm units: %w", err)
	default:
		drift.Missing += len(unconfirmed)
	}
	return drift, until, nil
}

// completePage calls repair with the units of a page that have no vector.
func (x *Indexer) completePage(ctx context.Context, t tenant.ID, after retrieve.UnitID, repair func([]retrieve.UnitID) error) (Drift, retrieve.UnitID, error) {
	missing, err := x.units.Unconfirmed(ctx, t, after, sweepPage)
	if err != nil {
		return Drift{}, after, fmt.Errorf("list units without a vector: %w", err)
	}
	drift := Drift{Missing: len(missing)}
	if err := repair(missing); err != nil {
		return drift, after, fmt.Errorf("complete units: %w", err)
	}
	return drift, reach(missing), nil
}

// reach returns the last id that a page covers.
func reach(page []retrieve.UnitID) retrieve.UnitID {
	if len(page) < sweepPage {
		return SweepEnd
	}
	return page[len(page)-1]
}

// differ compares two ordered lists up to an id and returns the ids in only one.
func differ(live, indexed []retrieve.UnitID, until retrieve.UnitID) (missing, orphaned []retrieve.UnitID) {
	next := func(ids []retrieve.UnitID) retrieve.UnitID {
		if len(ids) == 0 || ids[0] > until {
			return SweepEnd
		}
		return ids[0]
	}
	for {
		l, i := next(live), next(indexed)
		switch {
		case min(l, i) == SweepEnd:
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
