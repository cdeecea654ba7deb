package reembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// copyBatch is the number of units that are embedded before the progress is recorded.
const copyBatch = 128

// Config holds the dependencies of a Migrator. All are required.
type Config struct {
	Store      Store
	Indexer    Indexer
	Partitions placement.Partitions
	Embedders  retrieve.Embedders
	Log        *slog.Logger
}

// Migrator drives migrations. Its progress is in the store, so any process can continue
// after a crash; two of them only do the same work twice.
type Migrator struct{ Config }

// New returns a Migrator.
func New(c Config) *Migrator { return &Migrator{c} }

// errSliceEnded ends a slice before its work is complete.
var errSliceEnded = errors.New("time slice ended")

// Run works on the unfinished migration until nothing can be done now, or until the
// time is over. again means that work remains.
func (m *Migrator) Run(ctx context.Context, until time.Time) (again bool, err error) {
	for {
		current, err := m.Store.LatestEmbeddingMigration(ctx)
		if fault.Is(err, fault.NotFound) || err == nil && current.Phase.Finished() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, ok := m.Embedders[current.Target]; !ok && current.Phase != RollingBack {
			return false, fault.New(fault.Unavailable, "this server is not configured with model %s, to which the embeddings migrate", current.Model)
		}
		if err := m.Store.BeatEmbeddingMigration(ctx); err != nil {
			return false, err
		}
		waiting, err := m.step(ctx, current, until)
		switch {
		case errors.Is(err, errSliceEnded), errors.Is(err, placement.ErrLoading), fault.Is(err, fault.Conflict):
			return true, nil // continues after a pause, perhaps in another phase
		case err != nil || waiting:
			return false, err
		}
	}
}

// step completes the current phase. waiting means that it is too early.
func (m *Migrator) step(ctx context.Context, current Migration, until time.Time) (waiting bool, err error) {
	switch current.Phase {
	case Copying:
		if err := m.copyAll(ctx, current, until); err != nil {
			return false, err
		}
		return false, m.judge(ctx, current, Canary)
	case Canary:
		if err := m.copyAll(ctx, current, until); err != nil { // new tenants, and lost partitions
			return false, err
		}
		if current.PhaseAge < current.CanaryFor {
			return true, nil
		}
		return false, m.judge(ctx, current, Completing)
	case Completing:
		if err := m.copyAll(ctx, current, until); err != nil {
			return false, err
		}
		return false, m.finish(ctx, current, Completed, m.Store.CutOver, until)
	case RollingBack:
		return false, m.finish(ctx, current, RolledBack, m.Store.DiscardTarget, until)
	case Completed, RolledBack:
	}
	return false, nil
}

// judge compares the models and enters the next phase, or rolls the migration back.
func (m *Migrator) judge(ctx context.Context, current Migration, next Phase) error {
	scores, err := m.compare(ctx, current)
	if err != nil {
		return fmt.Errorf("compare the models: %w", err)
	}
	if err := m.Store.ScoreEmbeddingMigration(ctx, current.ID, scores); err != nil {
		return err
	}
	reason := ""
	if scores.Worse() && !current.Force {
		next = RollingBack
		reason = fmt.Sprintf("probe recall of model %s is %.0f %%, below the current model's %.0f %% (%d texts)",
			current.Model, 100*scores.Target, 100*scores.Source, scores.Probes)
	}
	m.Log.InfoContext(ctx, "embedding models compared", "model", current.Model, "next", string(next), "probes", scores.Probes,
		"source", scores.Source, "target", scores.Target)
	_, err = m.Store.EnterEmbeddingPhase(ctx, current, next, reason, current.Phase)
	return err
}

// copyAll completes the copy of every tenant.
func (m *Migrator) copyAll(ctx context.Context, current Migration, until time.Time) error {
	for {
		tenants, err := m.Store.ListPendingTenants(ctx, current)
		if err != nil || len(tenants) == 0 {
			return err
		}
		for _, t := range tenants {
			if err := m.copyTenant(ctx, current, t, until); err != nil {
				return fmt.Errorf("copy tenant %s: %w", t, err)
			}
		}
	}
}

func (m *Migrator) copyTenant(ctx context.Context, current Migration, t tenant.ID, until time.Time) error {
	next, err := m.Store.EnsureEmbeddingTarget(ctx, current, t)
	if err != nil || next.Placement.Location == (placement.Location{}) {
		return err
	}
	p := next.Placement
	id, err := placement.EnsurePartition(ctx, m.Store, m.Partitions, p)
	if err != nil {
		return err
	}
	cursor := retrieve.UnitID(next.Cursor)
	if id != p.PartitionID {
		p.PartitionID, cursor = id, 0
		if err := m.Store.SetPartitionID(ctx, t, p.Location, id); err != nil {
			return err
		}
	}
	target := placement.Target{Location: p.Location, Generation: next.Generation}
	if cursor, err = m.copyUnits(ctx, current, t, target, p, cursor, until); err != nil {
		return err
	}
	if err := m.Indexer.CompareTarget(ctx, t, target); err != nil {
		return err
	}
	_, err = m.Store.AdvanceEmbeddingTarget(ctx, t, p, cursor, true)
	return err
}

// copyUnits copies the units above the cursor and returns the last one. Units that change
// meanwhile are written to both generations by their own jobs, so the copy ends at the
// first batch that is not full.
func (m *Migrator) copyUnits(
	ctx context.Context, current Migration, t tenant.ID, target placement.Target, p placement.Placement, cursor retrieve.UnitID, until time.Time,
) (retrieve.UnitID, error) {
	size := batchSize(current.Rate)
	for {
		if !time.Now().Before(until) {
			return cursor, errSliceEnded
		}
		began := time.Now()
		ids, err := m.Store.Live(ctx, t, cursor, size)
		if err != nil {
			return cursor, err
		}
		if len(ids) > 0 {
			if err := m.Indexer.Copy(ctx, t, target, ids); err != nil {
				return cursor, err
			}
			cursor = ids[len(ids)-1]
			valid, err := m.Store.AdvanceEmbeddingTarget(ctx, t, p, cursor, false)
			if err == nil && !valid { // rolled back, or the partition was lost
				err = errSliceEnded
			}
			if err != nil {
				return cursor, err
			}
		}
		if len(ids) < size {
			return cursor, nil
		}
		if err := pause(ctx, current.Rate, size, began); err != nil {
			return cursor, err
		}
	}
}

// batchSize returns the number of units per batch: at a low rate, those of a few seconds.
func batchSize(rate int) int {
	if rate == 0 {
		return copyBatch
	}
	return min(max(5*rate, 1), copyBatch)
}

// pause waits until n texts since a time are within the rate.
func pause(ctx context.Context, rate, n int, began time.Time) error {
	if rate == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate)))):
		return nil
	}
}

// finish leaves one of the two placements of every tenant, deletes its vectors, and ends
// the migration.
func (m *Migrator) finish(ctx context.Context, current Migration, end Phase, leave func(context.Context, tenant.ID) error, until time.Time) error {
	for {
		tenants, err := m.Store.ListTargetTenants(ctx)
		if err != nil {
			return err
		}
		if len(tenants) == 0 {
			_, err := m.Store.EnterEmbeddingPhase(ctx, current, end, current.Reason, current.Phase)
			return err
		}
		for _, t := range tenants {
			if !time.Now().Before(until) {
				return errSliceEnded
			}
			if err := leave(ctx, t); err != nil {
				return fmt.Errorf("migrate tenant %s: %w", t, err)
			}
			if err := m.Store.DeleteOtherVectors(ctx, t); err != nil {
				return fmt.Errorf("clean up tenant %s: %w", t, err)
			}
		}
	}
}
