package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.RateStore = (*DB)(nil)

// takePermits takes a sixteenth of the permits that remain in the minute,
// rounded up.
const takePermits = `
	insert into rate_windows (tenant_id, minute, used, granted)
	values ($1, date_trunc('minute', now()), ($2::bigint + 15) / 16, ($2::bigint + 15) / 16)
	on conflict (tenant_id) do update set minute = excluded.minute,
		used = case when rate_windows.minute = excluded.minute
			then rate_windows.used + greatest(0, ($2::bigint - rate_windows.used + 15) / 16) else excluded.used end,
		granted = case when rate_windows.minute = excluded.minute
			then greatest(0, ($2::bigint - rate_windows.used + 15) / 16) else excluded.granted end
	returning granted, greatest(0, $2::bigint - used),
		extract(epoch from minute + interval '1 minute' - clock_timestamp())::float8`

// TakePermits implements tenant.RateStore.
func (d *DB) TakePermits(ctx context.Context, id tenant.ID, hard int64) (tenant.Permits, error) {
	var p tenant.Permits
	var seconds float64
	err := d.pool.QueryRow(ctx, takePermits, string(id), hard).Scan(&p.Granted, &p.Remaining, &seconds)
	if err != nil {
		return tenant.Permits{}, fmt.Errorf("take permits: %w", mapError(err))
	}
	p.Reset = time.Duration(seconds * float64(time.Second))
	return p, nil
}
