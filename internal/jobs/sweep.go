package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/queue"
)

// sweepBatch is the number of due tenants listed at a time.
const sweepBatch = 100

// SweepArgs are the arguments of the job that compares both stores: one pass over
// the tenants whose latest sweep began before the job was created.
type SweepArgs struct{}

// Kind returns the job kind.
func (SweepArgs) Kind() string { return "index.sweep" }

// sweepJob starts a pass periodically, unless another one is unfinished.
func sweepJob() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(sweepEvery), sweepArgs, nil)
}

func sweepArgs() (river.JobArgs, *river.InsertOpts) {
	return SweepArgs{}, &river.InsertOpts{Queue: queue.Periodic, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{
		ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
			rivertype.JobStateRunning, rivertype.JobStateScheduled,
		},
	}}
}

// sweepWorker runs a pass in slices. The progress is in the database, so a pass
// that ends early is continued by the next one.
type sweepWorker struct {
	river.WorkerDefaults[SweepArgs]
	indexer Indexer
	sweeps  Sweeps
	log     *slog.Logger
	now     func() time.Time
}

func newSweepWorker(indexer Indexer, sweeps Sweeps, log *slog.Logger) *sweepWorker {
	return &sweepWorker{indexer: indexer, sweeps: sweeps, log: log, now: time.Now}
}

// Timeout bounds a slice and its last page.
func (*sweepWorker) Timeout(*river.Job[SweepArgs]) time.Duration { return sweepSlice + jobTimeout }

// Work runs one slice. The job is snoozed if more tenants are due.
func (w *sweepWorker) Work(ctx context.Context, job *river.Job[SweepArgs]) error {
	s := slice{sweepWorker: w, due: job.CreatedAt, ends: w.now().Add(sweepSlice)}
	again, err := s.run(ctx)
	if s.total != (indexing.Drift{}) {
		w.log.InfoContext(ctx, "repaired the vector store", "missing", s.total.Missing, "orphaned", s.total.Orphaned)
	}
	if err == nil && s.failed > 0 {
		err = fmt.Errorf("%d of %d tenants failed: %w", s.failed, s.failed+s.swept, s.first)
	}
	if err == nil && s.swept > 0 {
		swept(ctx, s.total)
	}
	if !again {
		return err
	}
	if err != nil { // a job that is snoozed reports no error
		w.log.ErrorContext(ctx, "sweep failed; will be retried in the next pass", "error", err)
	}
	return river.JobSnooze(sweepPause)
}

// slice is a part of a pass.
type slice struct {
	*sweepWorker
	due, ends     time.Time
	total         indexing.Drift
	swept, failed int
	first         error // of the failed ones
}

// errSliceEnded ends a slice before all due tenants are swept.
var errSliceEnded = errors.New("time slice ended")

// run sweeps due tenants, oldest first, until the slice ends. A failure does not stop
// the others. again means that more tenants are due.
func (s *slice) run(ctx context.Context) (again bool, err error) {
	for {
		states, err := s.sweeps.ListDueSweeps(ctx, s.due, sweepBatch)
		if err != nil || len(states) == 0 {
			return false, err
		}
		for _, state := range states {
			if !s.now().Before(s.ends) {
				return true, nil
			}
			if err := s.sweepTenant(ctx, state); errors.Is(err, errSliceEnded) {
				return true, nil
			} else if err != nil {
				return false, err
			}
		}
	}
}

// sweepTenant sweeps one tenant page by page. It returns an error if the slice cannot
// continue. The attempt is recorded first, so that a tenant that ends the process does
// not keep the others from being swept.
func (s *slice) sweepTenant(ctx context.Context, state indexing.SweepState) error {
	if err := s.sweeps.BeginSweep(ctx, state.Tenant); err != nil {
		return err
	}
	for {
		found, next, err := s.indexer.SweepPage(ctx, state.Tenant, state.Cursor)
		s.total = s.total.Add(found)
		state.Drifted = state.Drifted || found.Unexpected()
		if ctx.Err() != nil {
			return fmt.Errorf("sweep tenant %s: %w", state.Tenant, ctx.Err())
		}
		if err != nil {
			s.fail(fmt.Errorf("sweep tenant %s: %w", state.Tenant, err))
			return nil
		}
		if next == indexing.SweepEnd {
			s.swept++
			return s.sweeps.CompleteSweep(ctx, state)
		}
		state.Cursor = next
		if !s.now().Before(s.ends) {
			return errors.Join(s.sweeps.SuspendSweep(ctx, state), errSliceEnded)
		}
		if err := s.sweeps.SaveSweepCursor(ctx, state); err != nil {
			return err
		}
	}
}

func (s *slice) fail(err error) {
	if s.failed++; s.first == nil {
		s.first = err
	}
}
