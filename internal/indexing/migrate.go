package indexing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errSuperseded ends a run that was replaced by another one or canceled.
var errSuperseded = errors.New("the migration was superseded or canceled")

// Migrate copies the tenant's live units, with the vectors stored in the database, into
// the target of its migration, and completes the migration. It does nothing if the
// migration belongs to another run. Writes and searches continue meanwhile:
//
//   - A unit that changes after the migration began is written to both placements by
//     its own job. Units from before are live in the database and copied here.
//   - A unit without a vector is left to its own job, too.
//   - The copy therefore ends at the first batch that is not full, even if the
//     tenant keeps writing.
//   - Searches use the current placement until CompleteMigration replaces it.
//
// The cursor is stored after each batch, and a later run resumes from it.
func (x *Indexer) Migrate(ctx context.Context, t tenant.ID, run int64) error {
	state, err := x.units.GetPlacement(ctx, t)
	if fault.Is(err, fault.NotFound) || err == nil && (!state.Writable() || state.Migration.Run != run) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get placement: %w", err)
	}
	if err := x.migrate(ctx, t, state); err != nil && !errors.Is(err, errSuperseded) {
		return err
	}
	return nil
}

func (x *Indexer) migrate(ctx context.Context, t tenant.ID, state placement.State) error {
	target := placement.Target{Location: state.Migration.Target.Location, Generation: state.Generation}
	run, cursor := state.Migration.Run, retrieve.UnitID(state.Migration.Cursor)
	// Units are confirmed only for the current placement, which searches use.
	j := job{tenant: t, targets: []placement.Target{target}, confirm: !state.Migrating()}
	// settle settles units and stores the cursor.
	settle := func(last retrieve.UnitID, ids []retrieve.UnitID) error {
		for batch := range slices.Chunk(ids, syncBatch) {
			if err := x.settle(ctx, j, batch); err != nil {
				return err
			}
		}
		current, err := x.units.AdvanceMigration(ctx, t, run, last)
		if err == nil && !current {
			err = errSuperseded
		}
		return err
	}
	for {
		ids, err := x.units.Live(ctx, t, cursor, syncBatch)
		if err != nil {
			return fmt.Errorf("list live units: %w", err)
		}
		if len(ids) > 0 {
			last := ids[len(ids)-1]
			if err := settle(last, ids); err != nil {
				return err
			}
			cursor = last
		}
		if len(ids) < syncBatch {
			break
		}
	}
	if _, err := x.compareAll(ctx, t, target.Location, func(ids []retrieve.UnitID) error { return settle(cursor, ids) }); err != nil {
		return err
	}
	// List waits until earlier writes are visible to searches.
	if _, err := x.index.List(ctx, t, target.Location, math.MaxInt64-1, 1); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	if err := x.units.CompleteMigration(ctx, t, run); err != nil {
		return fmt.Errorf("complete migration: %w", err)
	}
	return nil
}

// Copy embeds the live units among ids with the model of the target and writes them to
// it. Units that change meanwhile are written by their own jobs, too.
func (x *Indexer) Copy(ctx context.Context, t tenant.ID, target placement.Target, ids []retrieve.UnitID) error {
	return x.settle(ctx, job{tenant: t, targets: []placement.Target{target}, embed: true}, ids)
}

// CompareTarget repairs the differences between a target and the database, and waits
// until searches see earlier writes.
func (x *Indexer) CompareTarget(ctx context.Context, t tenant.ID, target placement.Target) error {
	if !target.Indexed() {
		return nil // Copy has completed it
	}
	_, err := x.compareAll(ctx, t, target.Location, func(ids []retrieve.UnitID) error {
		for batch := range slices.Chunk(ids, syncBatch) {
			if err := x.Copy(ctx, t, target, batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := x.index.List(ctx, t, target.Location, math.MaxInt64-1, 1); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	return nil
}

// Drop removes all entries of a location that is no longer used.
func (x *Indexer) Drop(ctx context.Context, p placement.Location) error {
	if err := x.index.Drop(ctx, p); err != nil {
		return fmt.Errorf("drop location: %w", err)
	}
	return nil
}
