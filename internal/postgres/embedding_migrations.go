package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ reembed.Store = (*DB)(nil)

// StartEmbeddingMigration starts a migration of all tenants to a generation, and commits
// the job that drives it. It returns Conflict if another one is unfinished.
func (d *DB) StartEmbeddingMigration(ctx context.Context, target placement.GenerationID, o reembed.Options) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		_, err := q.StartEmbeddingMigration(ctx, db.StartEmbeddingMigrationParams{
			TargetID: int16(target), CanaryPercent: integer(o.CanaryPercent), CanarySeconds: int64(o.CanaryFor / time.Second),
			Rate: integer(o.Rate), Forced: o.Force,
		})
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23505" {
			return reembed.ErrInProgress
		}
		if err != nil {
			return err
		}
		return d.insertEmbeddingJob(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("start embedding migration: %w", err)
	}
	return nil
}

// RollBackEmbeddingMigration has all users served with the previous model again. It
// returns Conflict if no migration can be rolled back.
func (d *DB) RollBackEmbeddingMigration(ctx context.Context, reason string) error {
	m, err := d.LatestEmbeddingMigration(ctx)
	if err != nil {
		return err
	}
	ok, err := d.EnterEmbeddingPhase(ctx, m, reembed.RollingBack, reason, reembed.Copying, reembed.Canary)
	if err == nil && !ok {
		err = reembed.NotReversible(m.Phase)
	}
	if err != nil {
		return err
	}
	return d.inTx(ctx, func(tx pgx.Tx, _ *db.Queries) error { return d.insertEmbeddingJob(ctx, tx) })
}

// insertEmbeddingJob inserts the job that drives the migration, unless one is unfinished.
func (d *DB) insertEmbeddingJob(ctx context.Context, tx pgx.Tx) error {
	_, err := d.jobs.InsertTx(ctx, tx, reembed.Args{}, &river.InsertOpts{
		Queue: queue.Periodic, MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
			rivertype.JobStateRunning, rivertype.JobStateScheduled,
		}},
	})
	if err != nil {
		return fmt.Errorf("commit job %s: %w", reembed.Args{}.Kind(), err)
	}
	return nil
}

// LatestEmbeddingMigration implements reembed.Store.
func (d *DB) LatestEmbeddingMigration(ctx context.Context) (reembed.Migration, error) {
	rows, err := db.New(d.pool).LatestEmbeddingMigration(ctx)
	if err != nil {
		return reembed.Migration{}, fmt.Errorf("get embedding migration: %w", mapError(err))
	}
	if len(rows) == 0 {
		return reembed.Migration{}, reembed.ErrNone
	}
	r := rows[0]
	m := reembed.Migration{
		ID: r.ID, Target: placement.GenerationID(r.TargetID), Model: r.Model, Phase: reembed.Phase(r.Phase), Reason: r.Reason,
		Options: reembed.Options{
			CanaryPercent: int(r.CanaryPercent), CanaryFor: time.Duration(r.CanarySeconds) * time.Second, Rate: int(r.Rate), Force: r.Forced,
		},
		Scores:    reembed.Scores{Probes: int(r.Probes), Source: r.SourceScore, Target: r.TargetScore},
		StartedAt: r.StartedAt, PhaseAge: ageOf(r.PhaseAge), Idle: ageOf(r.Idle),
		Pending: r.Pending, Ready: r.Ready, Migrated: r.Migrated,
	}
	if r.FinishedAt != nil {
		m.FinishedAt = *r.FinishedAt
	}
	return m, nil
}

// ageOf converts a number of seconds from the database.
func ageOf(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }

// BeatEmbeddingMigration implements reembed.Store.
func (d *DB) BeatEmbeddingMigration(ctx context.Context) error {
	return mapError(db.New(d.pool).BeatEmbeddingMigration(ctx))
}

// ScoreEmbeddingMigration implements reembed.Store.
func (d *DB) ScoreEmbeddingMigration(ctx context.Context, id int64, s reembed.Scores) error {
	err := db.New(d.pool).ScoreEmbeddingMigration(ctx, db.ScoreEmbeddingMigrationParams{
		ID: id, Probes: integer(s.Probes), SourceScore: s.Source, TargetScore: s.Target,
	})
	if err != nil {
		return fmt.Errorf("store scores of the models: %w", mapError(err))
	}
	return nil
}

// EnterEmbeddingPhase implements reembed.Store.
func (d *DB) EnterEmbeddingPhase(ctx context.Context, m reembed.Migration, to reembed.Phase, reason string, from ...reembed.Phase) (entered bool, err error) {
	err = d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		// No tenant is placed in the previous generation after the last phase began.
		if err := q.LockCollections(ctx); err != nil {
			return err
		}
		n, err := q.EnterEmbeddingPhase(ctx, db.EnterEmbeddingPhaseParams{
			ID: m.ID, ToPhase: string(to), Reason: reason,
			FromPhases: collect(from, func(p reembed.Phase) string { return string(p) }),
		})
		if entered = n > 0; err != nil || !entered {
			return err
		}
		if to == reembed.Completing {
			if err := q.DeactivateGenerations(ctx, int16(m.Target)); err != nil {
				return err
			}
			if err := q.SetActive(ctx, int16(m.Target)); err != nil {
				return err
			}
		}
		return q.NotifyAllTenants(ctx)
	})
	if err != nil {
		return false, fmt.Errorf("enter phase %s of the embedding migration: %w", to, err)
	}
	return entered, nil
}

// ListPendingTenants implements reembed.Store.
func (d *DB) ListPendingTenants(ctx context.Context, m reembed.Migration) ([]tenant.ID, error) {
	q := db.New(d.pool)
	name, err := q.GenerationName(ctx, int16(m.Target))
	if err != nil {
		return nil, fmt.Errorf("get embedding generation: %w", mapError(err))
	}
	ids, err := q.PendingEmbeddingTenants(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("list tenants to embed: %w", mapError(err))
	}
	return collect(ids, func(id string) tenant.ID { return tenant.ID(id) }), nil
}

// ListTargetTenants implements reembed.Store.
func (d *DB) ListTargetTenants(ctx context.Context) ([]tenant.ID, error) {
	rows, err := db.New(d.pool).EmbeddingTenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list migrating tenants: %w", mapError(err))
	}
	return collect(rows, func(r db.EmbeddingTenantsRow) tenant.ID { return tenant.ID(r.TenantID) }), nil
}
