package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/reembed"
)

const (
	// embeddingEvery is the interval at which an unfinished migration of the embeddings
	// is continued, for example after a crash or during its canary.
	embeddingEvery = time.Minute
	// embeddingSlice bounds how long a migration occupies a worker, and embeddingPause
	// is the time between two slices.
	embeddingSlice = 2 * time.Minute
	embeddingPause = 2 * time.Second
)

// MigrateEmbeddings adds the job that migrates tenants to another embedding model.
func MigrateEmbeddings(c *river.Config, m Migrator) error {
	if err := river.AddWorkerSafely(c.Workers, &embeddingWorker{migrator: m}); err != nil {
		return fmt.Errorf("register worker: %w", err)
	}
	c.PeriodicJobs = append(c.PeriodicJobs, river.NewPeriodicJob(river.PeriodicInterval(embeddingEvery), embeddingArgs, nil))
	return nil
}

// embeddingArgs starts a job unless another one is unfinished.
func embeddingArgs() (river.JobArgs, *river.InsertOpts) {
	return reembed.Args{}, &river.InsertOpts{Queue: queue.Periodic, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{
		ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
			rivertype.JobStateRunning, rivertype.JobStateScheduled,
		},
	}}
}

// embeddingWorker runs a migration in slices. Its progress is in the database.
type embeddingWorker struct {
	river.WorkerDefaults[reembed.Args]
	migrator Migrator
}

// Timeout bounds a slice and its last batch.
func (*embeddingWorker) Timeout(*river.Job[reembed.Args]) time.Duration {
	return embeddingSlice + jobTimeout
}

// Work runs one slice. The job is snoozed if more work remains; after an error the
// next periodic job continues.
func (w *embeddingWorker) Work(ctx context.Context, _ *river.Job[reembed.Args]) error {
	again, err := w.migrator.Run(ctx, time.Now().Add(embeddingSlice))
	if err != nil {
		return fmt.Errorf("migrate embeddings: %w", err)
	}
	if again {
		return river.JobSnooze(embeddingPause)
	}
	return nil
}
