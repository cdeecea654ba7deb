package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// retentionEvery is the interval at which expired records are deleted.
const retentionEvery = time.Hour

// RetentionArgs are the arguments of the job that deletes expired records of all
// tenants.
type RetentionArgs struct{}

// Kind returns the job kind.
func (RetentionArgs) Kind() string { return "retention" }

// Retention deletes expired records. postgres.DB implements it.
type Retention interface {
	// ListTenantIDs returns all tenants, in any state, and deleted ones with records.
	ListTenantIDs(ctx context.Context) ([]tenant.ID, error)
	// ExpireRecords deletes a tenant's expired records.
	ExpireRecords(ctx context.Context, t tenant.ID) error
}

// retentionJob deletes expired records periodically, unless the previous job is
// unfinished.
func retentionJob() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(retentionEvery), func() (river.JobArgs, *river.InsertOpts) {
		return RetentionArgs{}, &river.InsertOpts{Queue: queue.Periodic, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{
			ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
				rivertype.JobStateRunning, rivertype.JobStateScheduled,
			},
		}}
	}, nil)
}

// expireRecords deletes the expired records of all tenants. A failure does not stop
// the others.
func expireRecords(ctx context.Context, r Retention) error {
	tenants, err := r.ListTenantIDs(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, t := range tenants {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.ExpireRecords(ctx, t); err != nil {
			failures = append(failures, fmt.Errorf("tenant %s: %w", t, err))
		}
	}
	return errors.Join(failures...)
}
