package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ metering.RequestStore = (*DB)(nil)

// embeddedTokens returns the number of tokens of the units that have a vector.
func (d *DB) embeddedTokens(units []retrieve.Unit) (n int64) {
	for _, u := range units {
		n += d.tokensOf(u)
	}
	return n
}

// tokensOf returns the number of tokens that were embedded for a unit.
func (d *DB) tokensOf(u retrieve.Unit) int64 {
	if u.Vector == nil || d.config.CountTokens == nil {
		return 0
	}
	return int64(d.config.CountTokens(u.Dense))
}

// ReportRequests implements metering.RequestStore.
func (d *DB) ReportRequests(ctx context.Context, journal uuid.UUID, requests map[metering.TenantDay]int64) error {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := q.BeginReport(ctx); err != nil {
			return err
		}
		n, err := q.InsertReport(ctx, db.InsertReportParams{ID: journal.String(), Kept: interval(keepReports)})
		if err != nil || n == 0 {
			return err
		}
		var p db.AddUsageParams
		for of, count := range requests {
			addUsage(&p, of, count, 0)
		}
		return q.AddUsage(ctx, p)
	})
	if err != nil {
		return fmt.Errorf("report requests: %w", err)
	}
	return nil
}

func addUsage(p *db.AddUsageParams, of metering.TenantDay, requests, changes int64) {
	p.TenantIds, p.Days = append(p.TenantIds, string(of.Tenant)), append(p.Days, date(of.Day))
	p.Requests, p.Changes = append(p.Requests, requests), append(p.Changes, changes)
}

// countChanges adds the records of users and applications that are being sealed to the usage.
func countChanges(ctx context.Context, q *db.Queries, id tenant.ID, sealed []db.PendingAuditRow) error {
	days := map[metering.Day]int64{}
	for _, row := range sealed {
		if row.Actor == string(tenant.ActorUser) || row.Actor == string(tenant.ActorApplication) {
			days[metering.DayOf(row.At)]++
		}
	}
	if len(days) == 0 {
		return nil
	}
	if err := q.BeginReport(ctx); err != nil {
		return err
	}
	var p db.AddUsageParams
	for day, n := range days {
		addUsage(&p, metering.TenantDay{Tenant: id, Day: day}, 0, n)
	}
	return q.AddUsage(ctx, p)
}

// CloseDay makes the usage of a day, and of the days before, final. It waits for transactions
// that began on the day, but never for long while other writers wait behind it.
func (d *DB) CloseDay(ctx context.Context, day metering.Day) error {
	err := awaitLocks(ctx, func() error {
		return d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
			if err := limitLockWaits(ctx, tx, lockTimeout); err != nil {
				return err
			}
			if err := q.LockReports(ctx); err != nil {
				return err
			}
			if err := q.LockAllUsage(ctx); err != nil {
				return err
			}
			return q.CloseDay(ctx, date(day))
		})
	}, func(err error) {
		d.log.WarnContext(ctx, "waiting for transactions that change the usage; retrying", "interval", lockRetry, "error", err)
	})
	if err != nil {
		return fmt.Errorf("close day %s: %w", day, err)
	}
	return nil
}

// UsageOf returns the usage of each tenant on a closed day, by tenant.
func (d *DB) UsageOf(ctx context.Context, day metering.Day) ([]metering.Usage, error) {
	rows, err := db.New(d.pool).UsageOfDay(ctx, date(day))
	if err != nil {
		return nil, fmt.Errorf("read usage of %s: %w", day, mapError(err))
	}
	return collect(rows, func(r db.UsageOfDayRow) metering.Usage {
		return metering.Usage{Tenant: tenant.ID(r.TenantID), Namespace: r.Namespace, Name: r.Name,
			Requests: r.Requests, Changes: r.Changes, Storage: r.Storage, Embedded: r.Embedded}
	}), nil
}

// Now returns the time of the database.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	if err := d.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", mapError(err))
	}
	return now, nil
}

func date(d metering.Day) pgtype.Date { return pgtype.Date{Time: d.Time, Valid: true} }
