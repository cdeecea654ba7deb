package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Stats are the numbers of the whole database for metrics.
type Stats struct {
	Jobs     []JobStats
	Tenants  []TenantStats
	Blocked  int64         // conversations over quota, in all tenants
	IndexLag time.Duration // age of the oldest change that is not indexed
	SweepAge time.Duration // age of the oldest complete sweep of a tenant
	// DriftedSweeps are the consecutive sweeps with drift of the tenant with the most.
	DriftedSweeps int
	ErasureLag    time.Duration // age of the oldest erasure that is not in the ledger
	Unsealed      AuditStats
	Webhooks      WebhookStats
}

// WebhookStats counts the webhooks of active tenants that deliver nothing, and the tenants with webhooks that are not disabled.
type WebhookStats struct {
	Failing           int64 // for more than 15 minutes
	Disabled          int64
	FailingTenants    int64 // with a failing webhook
	DeliveringTenants int64 // the others
}

// AuditStats are the audit records that are not sealed yet, of all tenants.
type AuditStats struct {
	Records int64
	Oldest  time.Duration // age of the oldest of them
}

// JobStats counts the unfinished jobs of a kind.
type JobStats struct {
	Kind            string
	Queued, Running int64
	Oldest          time.Duration // age of the oldest of them
}

// TenantStats is the usage of a tenant and its quotas.
type TenantStats struct {
	ID              tenant.ID
	Namespace, Name string
	Usage           tenant.Usage
	Hard            tenant.Quota // memories, conversations, storage and users
}

// jobStats counts unfinished jobs. The condition on the state uses River's
// index; periodic jobs scheduled for later are not late.
const jobStats = `select kind, count(*) filter (where state <> 'running'), count(*) filter (where state = 'running'),
	coalesce(extract(epoch from now() - min(created_at)), 0)::float8
	from river_job where state in ('available', 'pending', 'retryable', 'running', 'scheduled') group by kind order by kind`

// Stats returns the statistics, with the given number of tenants, highest
// relative usage first. It reads one snapshot and no user data.
func (d *DB) Stats(ctx context.Context, most int) (Stats, error) {
	var s Stats
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		s = Stats{}
		var err error
		if s.Jobs, err = readJobStats(ctx, tx); err != nil {
			return fmt.Errorf("count jobs: %w", err)
		}
		for _, j := range s.Jobs {
			if j.Kind == (indexing.SyncArgs{}).Kind() {
				s.IndexLag = j.Oldest
			}
		}
		if s.Blocked, err = q.BlockedConversations(ctx); err != nil {
			return fmt.Errorf("count blocked conversations: %w", err)
		}
		sweepAge, err := q.OldestSweep(ctx)
		if err != nil {
			return fmt.Errorf("find the oldest sweep: %w", err)
		}
		s.SweepAge = max(0, time.Duration(sweepAge*float64(time.Second)))
		drifted, err := q.DriftedSweeps(ctx)
		if err != nil {
			return fmt.Errorf("find sweeps with drift: %w", err)
		}
		s.DriftedSweeps = int(drifted)
		erasureLag, err := q.ErasureLag(ctx)
		if err != nil {
			return fmt.Errorf("read age of pending erasures: %w", err)
		}
		s.ErasureLag = max(0, time.Duration(erasureLag*float64(time.Second)))
		backlog, err := q.AuditBacklog(ctx)
		if err != nil {
			return fmt.Errorf("count unsealed audit records: %w", err)
		}
		s.Unsealed = AuditStats{Records: backlog.Records, Oldest: max(0, time.Duration(backlog.Age*float64(time.Second)))}
		webhooks, err := q.FailingWebhooks(ctx)
		if err != nil {
			return fmt.Errorf("count failing webhooks: %w", err)
		}
		s.Webhooks = WebhookStats(webhooks)
		if s.Tenants, err = readTenantStats(ctx, tx, most); err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
		return nil
	})
	return s, err
}

func readJobStats(ctx context.Context, tx pgx.Tx) ([]JobStats, error) {
	rows, err := tx.Query(ctx, jobStats)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (j JobStats, err error) {
		var age float64
		err = row.Scan(&j.Kind, &j.Queued, &j.Running, &age)
		j.Oldest = max(0, time.Duration(age*float64(time.Second)))
		return j, err
	})
}

func readTenantStats(ctx context.Context, tx pgx.Tx, most int) ([]TenantStats, error) {
	rows, err := tx.Query(ctx, overviewUsage, append(thresholds(), most)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t TenantStats, err error) {
		err = row.Scan(append([]any{&t.ID, &t.Namespace, &t.Name}, countedFields(&t.Usage, &t.Hard)...)...)
		return t, err
	})
}

// PoolStats describes the connection pool of this process.
type PoolStats struct {
	Used, Idle, Max int32
	Waits           int64         // acquisitions that had to wait
	Waited          time.Duration // total duration of the waits
}

// Pool returns the statistics of the connection pool.
func (d *DB) Pool() PoolStats {
	s := d.pool.Stat()
	return PoolStats{
		Used: s.AcquiredConns(), Idle: s.IdleConns(), Max: s.MaxConns(),
		Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
	}
}
