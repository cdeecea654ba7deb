package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// worker runs the jobs of one kind.
type worker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	log     *slog.Logger
	timeout time.Duration
	do      func(context.Context, T) error
}

func add[T river.JobArgs](to *river.Workers, log *slog.Logger, timeout time.Duration, do func(context.Context, T) error) error {
	return river.AddWorkerSafely(to, &worker[T]{log: log, timeout: timeout, do: do})
}

// Timeout bounds one attempt.
func (w *worker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// Work runs the job. A job that waits for an unavailable dependency is snoozed, which does
// not record the attempt: otherwise the job's row would grow throughout a long outage.
func (w *worker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	ctx = tenant.WithActor(ctx, tenant.Actor{Kind: tenant.ActorSystem, Via: job.Kind})
	err := w.do(ctx, job.Args)
	if ctx.Err() != nil || !fault.Is(err, fault.Unavailable) || job.Attempt >= job.MaxAttempts {
		return err // the sweep has a single attempt, because it runs periodically
	}
	wait := backoff(snoozes(job.JobRow))
	w.log.WarnContext(ctx, "job waits for a store", "job", job.Kind, "id", job.ID, "wait", wait, "error", err)
	return river.JobSnooze(wait)
}

// snoozes returns how often a job has been snoozed.
func snoozes(job *rivertype.JobRow) int {
	var metadata struct {
		Snoozes int `json:"snoozes"` // written by River
	}
	if json.Unmarshal(job.Metadata, &metadata) != nil {
		return 0
	}
	return metadata.Snoozes
}

// backoff doubles the delay after each failure, up to maxRetry.
func backoff(failures int) time.Duration {
	if failures >= 5 {
		return maxRetry
	}
	return min(time.Second<<failures, maxRetry)
}

// retryPolicy delays retries of failed jobs.
type retryPolicy struct{}

// NextRetry returns the time of a failed job's next attempt.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(backoff(len(job.Errors)))
}

// logErrors logs failed attempts.
type logErrors struct{ log *slog.Logger }

// HandleError logs a failed attempt, as a warning if a shutdown interrupted it.
func (l logErrors) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	level := slog.LevelError
	if ctx.Err() != nil {
		level = slog.LevelWarn
	}
	l.log.Log(ctx, level, "job failed and will be retried", "job", job.Kind, "id", job.ID, "attempt", job.Attempt, "error", err)
	return nil
}

// HandlePanic logs a panic; the job is retried.
func (l logErrors) HandlePanic(ctx context.Context, job *rivertype.JobRow, cause any, trace string) *river.ErrorHandlerResult {
	l.log.ErrorContext(ctx, "job panicked", "job", job.Kind, "id", job.ID, "panic", cause, "trace", trace)
	return nil
}
