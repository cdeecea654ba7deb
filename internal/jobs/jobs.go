package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Workers per queue and replica.
const (
	recentWorkers     = 8
	backlogWorkers    = 2
	importWorkers     = 1
	purgeWorkers      = 2
	placementWorkers  = 2
	webhookWorkers    = 16
	extractionWorkers = 4
	periodicWorkers   = 2
)

const (
	// maxRetry is the maximum delay before a retry. It bounds how long a store that
	// has recovered stays out of date.
	maxRetry = 30 * time.Second
	// jobTimeout bounds one attempt; the next attempt continues the work.
	jobTimeout = 2 * time.Minute
	// wholeTimeout bounds an attempt that processes a whole tenant.
	wholeTimeout = time.Hour
	// rescueAfter is the age at which a running job is taken from a replica that
	// has died. Jobs are idempotent.
	rescueAfter = jobTimeout + time.Minute
	// sweepEvery is the interval at which a pass over all tenants begins, unless the
	// previous pass has not finished.
	sweepEvery = 10 * time.Minute
	// sweepSlice bounds how long a sweep occupies a worker, and sweepPause is the time
	// between two slices.
	sweepSlice = 2 * time.Minute
	sweepPause = time.Minute
)

// Indexer synchronizes the vector store. indexing.Indexer implements it.
type Indexer interface {
	Sync(ctx context.Context, t tenant.ID, units []retrieve.UnitID) error
	Migrate(ctx context.Context, t tenant.ID, run int64) error
	Drop(ctx context.Context, p placement.Location) error
	SweepPage(ctx context.Context, t tenant.ID, after retrieve.UnitID) (found indexing.Drift, next retrieve.UnitID, err error)
}

// Tenants runs the jobs on a tenant's rows. postgres.DB implements it: an interface, because
// adapters do not import one another.
type Tenants interface {
	Rebalance(ctx context.Context, t tenant.ID) error
	tenant.PurgeStore
	PurgeAccount(ctx context.Context, a account.PurgeArgs) error
	PurgeUser(ctx context.Context, scope tenant.Scope) error
	FinishDeletions(ctx context.Context, scope tenant.Scope) error
	Sweeps
	Retention
	Fairness
}

// Migrator migrates the embeddings. reembed.Migrator implements it.
type Migrator interface {
	Run(ctx context.Context, until time.Time) (again bool, err error)
}

// Sweeps stores the progress of sweeps. postgres.DB implements it.
type Sweeps interface {
	// ListDueSweeps returns the tenants whose latest sweep began before a time, oldest
	// first.
	ListDueSweeps(ctx context.Context, before time.Time, most int) ([]indexing.SweepState, error)
	// BeginSweep records an attempt.
	BeginSweep(ctx context.Context, t tenant.ID) error
	// SaveSweepCursor records progress within a tenant.
	SaveSweepCursor(ctx context.Context, s indexing.SweepState) error
	// SuspendSweep records progress within a tenant that is then due first.
	SuspendSweep(ctx context.Context, s indexing.SweepState) error
	// CompleteSweep records that the whole tenant was swept, and whether drift was found.
	CompleteSweep(ctx context.Context, s indexing.SweepState) error
}

// Config returns the configuration of the River client.
func Config(indexer Indexer, tenants Tenants, imports *importer.Runner, log *slog.Logger) (*river.Config, error) {
	workers := river.NewWorkers()
	for _, err := range []error{
		add(workers, log, jobTimeout, func(ctx context.Context, a indexing.SyncArgs) error { return indexer.Sync(ctx, a.Tenant, a.Units) }),
		// A migration whose replica died does not wait that long: the operator starts another run.
		add(workers, log, wholeTimeout, func(ctx context.Context, a indexing.MigrateArgs) error { return indexer.Migrate(ctx, a.Tenant, a.Run) }),
		add(workers, log, jobTimeout, func(ctx context.Context, a indexing.DropArgs) error {
			return indexer.Drop(ctx, a.Location())
		}),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.RebalanceArgs) error { return tenants.Rebalance(ctx, a.Tenant) }),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.PurgeArgs) error {
			return tenant.Purge(ctx, tenants, indexer, a.Tenant)
		}),
		add(workers, log, wholeTimeout, func(ctx context.Context, a importer.Args) error { return importFile(ctx, imports, a) }),
		add(workers, log, jobTimeout, tenants.PurgeAccount),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.FinishDeletionsArgs) error {
			return tenants.FinishDeletions(ctx, tenant.JobScope(a.Tenant, a.User))
		}),
		add(workers, log, jobTimeout, func(ctx context.Context, a tenant.PurgeUserArgs) error {
			return tenants.PurgeUser(ctx, tenant.JobScope(a.Tenant, a.User))
		}),
		add(workers, log, wholeTimeout, func(ctx context.Context, _ RetentionArgs) error { return expireRecords(ctx, tenants) }),
		river.AddWorkerSafely(workers, newSweepWorker(indexer, tenants, log)),
	} {
		if err != nil {
			return nil, fmt.Errorf("register worker: %w", err)
		}
	}
	return &river.Config{
		Logger:               slog.New(atLeast{slog.LevelWarn, log.Handler()}),
		Workers:              workers,
		JobTimeout:           jobTimeout,
		RescueStuckJobsAfter: rescueAfter,
		RetryPolicy:          retryPolicy{},
		ErrorHandler:         logErrors{log},
		PeriodicJobs:         []*river.PeriodicJob{sweepJob(), retentionJob()},
		Middleware:           []rivertype.Middleware{newTurns(tenants, log)},
		Queues: map[string]river.QueueConfig{
			queue.Recent:     {MaxWorkers: recentWorkers},
			queue.Backlog:    {MaxWorkers: backlogWorkers},
			queue.Imports:    {MaxWorkers: importWorkers},
			queue.Purges:     {MaxWorkers: purgeWorkers},
			queue.Placements: {MaxWorkers: placementWorkers},
			queue.Periodic:   {MaxWorkers: periodicWorkers},
		},
		// PostgreSQL announces new jobs; polling is the fallback.
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: time.Second,
		// Arguments contain only ids, so completed jobs are of little use.
		CompletedJobRetentionPeriod: 10 * time.Minute,
		ReindexerIndexNames: slices.DeleteFunc(river.ReindexerIndexNamesDefault(), func(name string) bool {
			return slices.Contains(queue.UnusedIndexes, name)
		}),
	}, nil
}
