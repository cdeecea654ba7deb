package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.RateStore = (*DB)(nil)

// permitsQuery returns the query that takes a sixteenth of the permits that remain in
// the minute, rounded up.
func permitsQuery(table, key string) string {
	return `
	insert into ` + table + ` as w (` + key + `, minute, used, granted)
	values ($1, date_trunc('minute', now()), ($2::bigint + 15) / 16, ($2::bigint + 15) / 16)
	on conflict (` + key + `) do update set minute = excluded.minute,
		used = case when w.minute = excluded.minute
			then w.used + greatest(0, ($2::bigint - w.used + 15) / 16) else excluded.used end,
		granted = case when w.minute = excluded.minute
			then greatest(0, ($2::bigint - w.used + 15) / 16) else excluded.granted end
	returning granted, greatest(0, $2::bigint - used),
		extract(epoch from minute + interval '1 minute' - clock_timestamp())::float8`
}

var (
	takeTenantPermits      = permitsQuery("rate_windows", "tenant_id")
	takeApplicationPermits = permitsQuery("application_rate_windows", "user_id")
)

// TakePermits implements tenant.RateStore.
func (d *DB) TakePermits(ctx context.Context, of tenant.RateLimited, hard int64) (tenant.Permits, error) {
	var p tenant.Permits
	var seconds float64
	query, key := takeTenantPermits, any(string(of.Tenant))
	if of.Application != 0 {
		query, key = takeApplicationPermits, int64(of.Application)
	}
	err := d.pool.QueryRow(ctx, query, key, hard).Scan(&p.Granted, &p.Remaining, &seconds)
	if err != nil {
		return tenant.Permits{}, fmt.Errorf("take permits: %w", mapError(err))
	}
	p.Reset = time.Duration(seconds * float64(time.Second))
	return p, nil
}
