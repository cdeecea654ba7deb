package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// syncBatch is the maximum number of units per index job.
	syncBatch = 500
	// recentUnits is the maximum number of units of a write that counts as
	// recent.
	recentUnits = 50
)

// insertSync inserts the jobs that synchronize the index with the units, later in the
// transaction.
func (d *DB) insertSync(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, units []retrieve.UnitID) error {
	if len(units) == 0 {
		return nil
	}
	name := queue.Recent
	if len(units) > recentUnits {
		name = queue.Backlog
	}
	var params []river.InsertManyParams
	for batch := range slices.Chunk(units, syncBatch) {
		params = append(params, river.InsertManyParams{
			Args: indexing.SyncArgs{Tenant: id, Units: batch}, InsertOpts: insertOpts(name),
		})
	}
	if _, err := d.jobs.InsertManyFastTx(ctx, laterTx{tx, q.Later()}, params); err != nil {
		return fmt.Errorf("encode index jobs: %w", err)
	}
	return nil
}

// insertJob inserts a background job in the transaction.
func (d *DB) insertJob(ctx context.Context, tx pgx.Tx, name string, args river.JobArgs) error {
	_, err := d.jobs.InsertTx(ctx, tx, args, insertOpts(name))
	if err != nil {
		return fmt.Errorf("commit job %s: %w", args.Kind(), err)
	}
	return nil
}

// insertOpts returns the options of a job that waits for its tenant's turn.
func insertOpts(name string) *river.InsertOpts {
	return &river.InsertOpts{Queue: name, MaxAttempts: maxAttempts, Priority: queue.Waiting}
}

// maxAttempts lets a job outlast an outage of several days: retries are at most
// half a minute apart (internal/jobs).
const maxAttempts = 32000

// Jobs returns the client that runs jobs. The caller starts and stops it. It uses
// LISTEN, which does not work through a pooler.
func (d *DB) Jobs(c *river.Config) (*river.Client[pgx.Tx], error) {
	client, err := river.NewClient(riverpgxv5.New(d.direct), c)
	if err != nil {
		return nil, fmt.Errorf("prepare workers: %w", err)
	}
	return client, nil
}

// insertPurge inserts the job that purges a tenant, unless one is queued or
// running.
func (d *DB) insertPurge(ctx context.Context, tx pgx.Tx, id tenant.ID) error {
	opts := insertOpts(queue.Purges)
	opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
		rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}
	_, err := d.jobs.InsertTx(ctx, tx, tenant.PurgeArgs{Tenant: id}, opts)
	if err != nil {
		return fmt.Errorf("commit purge job: %w", err)
	}
	return nil
}
