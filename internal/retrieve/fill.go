package retrieve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errNotWanted ends a run whose place is filled by another, or by no one.
var errNotWanted = errors.New("the place is not filled by this run any more")

// Fill writes the tenant's live units, with the vectors the database keeps,
// into the place that is being filled, and ends the filling when all are there.
// Nothing is done when the filling is not the run's. Writes and searches go on
// meanwhile:
//
//   - A unit that changes after the filling began is written by its own job,
//     which knows of the place. Those that were there before are live in the
//     database, and found here.
//   - What has no vector yet is left to its own job, too.
//   - So the list ends where a batch of it is not full, though the tenant writes
//     on.
//   - The current place is read until Filled makes this one the current.
//
// What was done is noted batch by batch: a later run goes on from there.
func (x *Indexer) Fill(ctx context.Context, t tenant.ID, run int64) error {
	state, err := x.units.GetPlacement(ctx, t)
	if fault.Is(err, fault.NotFound) || err == nil && (!state.Writable() || state.Migration.Run != run) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get placement: %w", err)
	}
	if err := x.fill(ctx, t, state); err != nil && !errors.Is(err, errNotWanted) {
		return err
	}
	return nil
}

func (x *Indexer) fill(ctx context.Context, t tenant.ID, state placement.State) error {
	target, run, cursor := state.Migration.Target.Location, state.Migration.Run, UnitID(state.Migration.Cursor)
	// That of another place is not what confirmed units are looked for in.
	j := job{tenant: t, places: []placement.Location{target}, confirm: !state.Migrating()}
	// put settles units and notes up to where all are there.
	put := func(upto UnitID, ids []UnitID) error {
		for batch := range slices.Chunk(ids, syncBatch) {
			if err := x.settle(ctx, j, batch); err != nil {
				return err
			}
		}
		wanted, err := x.units.AdvanceMigration(ctx, t, run, upto)
		if err == nil && !wanted {
			err = errNotWanted
		}
		return err
	}
	for {
		ids, err := x.units.Live(ctx, t, cursor, syncBatch)
		if err != nil {
			return fmt.Errorf("list live units: %w", err)
		}
		if len(ids) > 0 {
			upto := ids[len(ids)-1]
			if err := put(upto, ids); err != nil {
				return err
			}
			cursor = upto
		}
		if len(ids) < syncBatch {
			break
		}
	}
	if _, err := x.sweep(ctx, t, target, func(ids []UnitID) error { return put(cursor, ids) }); err != nil {
		return err
	}
	// Listing waits for what was written before: afterwards searches see it.
	if _, err := x.index.List(ctx, t, target, math.MaxInt64-1, 1); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	if err := x.units.CompleteMigration(ctx, t, run); err != nil {
		return fmt.Errorf("end filling: %w", err)
	}
	return nil
}

// Empty removes what is in a place that nobody is in any more.
func (x *Indexer) Empty(ctx context.Context, p placement.Location) error {
	if err := x.index.Drop(ctx, p); err != nil {
		return fmt.Errorf("empty a place: %w", err)
	}
	return nil
}
