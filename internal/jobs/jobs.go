package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Workers per queue and replica.
const (
	recentWorkers  = 8
	backlogWorkers = 2
	importWorkers  = 1
)

const (
	// maxRetry is the longest wait before a job is tried again: a store that
	// comes back is caught up with within it.
	maxRetry = 30 * time.Second
	// jobTimeout bounds one attempt; what is not done goes on in the next.
	jobTimeout = 2 * time.Minute
	// wholeTimeout bounds one that looks at all of a tenant.
	wholeTimeout = time.Hour
	// rescueAfter is when a job is taken from a replica that died with it. Jobs
	// bear being done twice.
	rescueAfter = jobTimeout + time.Minute
	// sweepEvery is how often the stores are compared with one another.
	sweepEvery = 10 * time.Minute
)

// Indexer keeps the vector store in step. retrieve.Indexer is one.
type Indexer interface {
	Sync(ctx context.Context, t tenant.ID, units []retrieve.UnitID) error
	Migrate(ctx context.Context, t tenant.ID, run int64) error
	Drop(ctx context.Context, p placement.Location) error
	Sweep(ctx context.Context, t tenant.ID) (retrieve.Drift, error)
}

// Tenants does what is to be done to a tenant's rows. postgres.DB is one.
type Tenants interface {
	Rebalance(ctx context.Context, t tenant.ID) error
	Purge(ctx context.Context, t tenant.ID) error
	PurgeAccount(ctx context.Context, a account.PurgeArgs) error
	PurgeUser(ctx context.Context, scope tenant.Scope) error
	ActiveTenants(ctx context.Context) ([]tenant.ID, error)
}

// Imports takes in uploaded files. imports.Runner is one.
type Imports interface {
	// Run goes on with an import; again, if it is not 0, is after how long there
	// may be more to do.
	Run(ctx context.Context, a importer.Args) (again time.Duration, err error)
}

// Config returns what a River client of ours runs with.
func Config(indexer Indexer, tenants Tenants, imports Imports, log *slog.Logger) (*river.Config, error) {
	workers := river.NewWorkers()
	for _, err := range []error{
		add(workers, log, jobTimeout, func(ctx context.Context, a retrieve.SyncArgs) error { return indexer.Sync(ctx, a.Tenant, a.Units) }),
		// One whose replica died is not waited for that long: the operator commits another run.
		add(workers, log, wholeTimeout, func(ctx context.Context, a retrieve.MigrateArgs) error { return indexer.Migrate(ctx, a.Tenant, a.Run) }),
		add(workers, log, jobTimeout, func(ctx context.Context, a retrieve.DropArgs) error {
			return indexer.Drop(ctx, placement.Location{Collection: a.Collection, Partition: a.Partition, Shared: a.Shared})
		}),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.RebalanceArgs) error { return tenants.Rebalance(ctx, a.Tenant) }),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.PurgeArgs) error { return tenants.Purge(ctx, a.Tenant) }),
		add(workers, log, wholeTimeout, func(ctx context.Context, a importer.Args) error { return importFile(ctx, imports, a) }),
		add(workers, log, jobTimeout, tenants.PurgeAccount),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.PurgeUserArgs) error {
			return tenants.PurgeUser(ctx, tenant.JobScope(a.Tenant, a.User))
		}),
		add(workers, log, wholeTimeout, func(ctx context.Context, _ SweepArgs) error { return sweep(ctx, indexer, tenants, log) }),
	} {
		if err != nil {
			return nil, fmt.Errorf("register worker: %w", err)
		}
	}
	sweepJob := river.NewPeriodicJob(river.PeriodicInterval(sweepEvery), func() (river.JobArgs, *river.InsertOpts) {
		return SweepArgs{}, &river.InsertOpts{Queue: queue.Backlog, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: sweepEvery}}
	}, nil)
	return &river.Config{
		Logger:               slog.New(atLeast{slog.LevelWarn, log.Handler()}),
		Workers:              workers,
		JobTimeout:           jobTimeout,
		RescueStuckJobsAfter: rescueAfter,
		RetryPolicy:          retryPolicy{},
		ErrorHandler:         logErrors{log},
		PeriodicJobs:         []*river.PeriodicJob{sweepJob},
		Queues: map[string]river.QueueConfig{
			queue.Recent:  {MaxWorkers: recentWorkers},
			queue.Backlog: {MaxWorkers: backlogWorkers},
			queue.Imports: {MaxWorkers: importWorkers},
		},
		// Jobs are announced by the database; polling is for when that fails.
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: time.Second,
		// Their arguments are ids only; a record of them is of no use for long.
		CompletedJobRetentionPeriod: 10 * time.Minute,
	}, nil
}
