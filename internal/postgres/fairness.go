package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
)

// tenantIndex finds the tenants with queued jobs, and the jobs of each.
const tenantIndex = `create index if not exists river_job_tenants on river_job
	(queue, (args ->> 'tenant'), priority, scheduled_at, id) where state = 'available'`

// promoteJobs gives a turn ($3) to the oldest jobs of each tenant that has no running job
// in the queue. River runs these first, in the order in which they were promoted. Jobs
// that had a turn wait again ($4): the one that ends now ($5), which may be tried again, and
// those that are not among the oldest of their tenant anymore, for example after an outage. The query visits each tenant with queued jobs once,
// by the index.
const promoteJobs = `with recursive tenants (id) as (
	(select args ->> 'tenant' from river_job
		where state = 'available' and queue = $1 and args ->> 'tenant' is not null order by args ->> 'tenant' limit 1)
	union all
	select (select j.args ->> 'tenant' from river_job j
		where j.state = 'available' and j.queue = $1 and j.args ->> 'tenant' > t.id order by j.args ->> 'tenant' limit 1)
	from tenants t where t.id is not null
), oldest as (
	select j.id, j.priority, t.id in (select args ->> 'tenant' from river_job where state = 'running' and queue = $1) as running
	from tenants t cross join lateral (
		select id, priority from river_job where state = 'available' and queue = $1 and args ->> 'tenant' = t.id and scheduled_at <= now()
		order by priority, scheduled_at, id limit $2
	) j where t.id is not null
), changed as (
	select id, $3::smallint as priority from oldest where priority > $3 and running is not true
	union all
	select id, $4 from river_job where state = 'available' and queue = $1 and priority = $3
		and args ->> 'tenant' is not null and id not in (select id from oldest)
	union all
	select id, $4 from river_job where id = $5 and priority = $3 and args ->> 'tenant' is not null
), locked as (
	select j.id, c.priority from river_job j join changed c on c.id = j.id where j.state = 'available' or j.id = $5 for update of j skip locked
)
update river_job j set priority = l.priority, scheduled_at = case when l.priority = $3 then now() else j.scheduled_at end
from locked l where j.id = l.id`

// PromoteJobs implements jobs.Fairness.
func (d *DB) PromoteJobs(ctx context.Context, name string, perTenant int, ended int64) error {
	err := d.inTx(ctx, func(tx pgx.Tx, _ *db.Queries) error {
		_, err := tx.Exec(ctx, promoteJobs, name, perTenant, queue.Turn, queue.Waiting, ended)
		return err
	})
	if err != nil {
		return fmt.Errorf("promote jobs of queue %s: %w", name, err)
	}
	return nil
}
