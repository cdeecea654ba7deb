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

// turnTenants is the number of tenants that get a turn at a time. It is more than there are workers.
const turnTenants = 100

// promoteJobs gives a turn ($3) to the oldest jobs of tenants that have no running job in the queue. River runs these
// first, in the order in which they were promoted. Jobs that had a turn wait again ($4): the one that ends now ($5), which
// may be retried, and those that are not among the oldest of their tenant anymore, for example after an outage.
//
// The query visits at most $6 tenants with queued jobs, by the index, from a random one on. If more have queued jobs, each
// gets a turn after about as many calls, and the time of a call does not grow with their number. That needs plans that
// do not depend on statistics, because an outage queues jobs faster than they are collected: limits and arrays make PostgreSQL
// look up jobs by id, and without sorting (promotePlan) only tenantIndex has the order. "between" keeps the tenant in the order.
const promoteJobs = `with recursive start as materialized (
	select gen_random_uuid()::text as id
), after (id, n) as (
	(select args ->> 'tenant', 1 from river_job
		where state = 'available' and queue = $1 and args ->> 'tenant' >= (select id from start) order by args ->> 'tenant' limit 1)
	union all
	select (select j.args ->> 'tenant' from river_job j
		where j.state = 'available' and j.queue = $1 and j.args ->> 'tenant' > t.id order by j.args ->> 'tenant' limit 1), t.n + 1
	from after t where t.id is not null and t.n < $6
), before (id, n) as (
	(select args ->> 'tenant', 1 from river_job
		where state = 'available' and queue = $1 and args ->> 'tenant' < (select id from start)
			and (select count(id) from after) < $6 order by args ->> 'tenant' limit 1)
	union all
	select (select j.args ->> 'tenant' from river_job j
		where j.state = 'available' and j.queue = $1 and j.args ->> 'tenant' > t.id and j.args ->> 'tenant' < (select id from start)
		order by j.args ->> 'tenant' limit 1), t.n + 1
	from before t where t.id is not null and t.n < $6 - (select count(id) from after)
), tenants as (
	select id from after where id is not null union all select id from before where id is not null
), oldest as (
	select j.id, j.priority, t.id in (select args ->> 'tenant' from river_job where state = 'running' and queue = $1) as running
	from tenants t cross join lateral (
		select id, priority from river_job where state = 'available' and queue = $1 and args ->> 'tenant' between t.id and t.id and scheduled_at <= now()
		order by args ->> 'tenant', priority, scheduled_at, id limit $2
	) j
), changed as (
	select id, $3::smallint as priority from oldest where priority > $3 and running is not true
	union all
	select j.id, $4 from tenants t cross join lateral (
		select id from river_job where state = 'available' and queue = $1 and args ->> 'tenant' between t.id and t.id and priority = $3
		order by args ->> 'tenant', priority, scheduled_at, id limit 1000
	) j where j.id not in (select id from oldest)
	union all
	select id, $4 from river_job where id = $5 and priority = $3 and args ->> 'tenant' is not null
), locked as (
	select j.id, c.priority from changed c cross join lateral (
		select id from river_job where id = c.id and (state = 'available' or id = $5) limit 1 for update skip locked
	) j
), l as (
	select array_agg(id) as ids, array_agg(id) filter (where priority = $3) as promoted from locked
)
update river_job j set priority = case when j.id = any(l.promoted) then $3 else $4 end,
	scheduled_at = case when j.id = any(l.promoted) then now() else j.scheduled_at end
from l where j.id = any(l.ids)`

// promotePlan excludes plans of promoteJobs that read all queued jobs and sort them.
const promotePlan = "set local enable_sort = off"

// PromoteJobs implements jobs.Fairness.
func (d *DB) PromoteJobs(ctx context.Context, name string, perTenant int, ended int64) error {
	err := d.inTx(ctx, func(tx pgx.Tx, _ *db.Queries) error {
		if _, err := tx.Exec(ctx, promotePlan); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, promoteJobs, name, perTenant, queue.Turn, queue.Waiting, ended, turnTenants)
		return err
	})
	if err != nil {
		return fmt.Errorf("promote jobs of queue %s: %w", name, err)
	}
	return nil
}
