-- name: ListDueSweeps :many
-- The active tenants with a placement whose latest sweep began before a time, oldest first.
select t.id, coalesce(s.cursor, 0)::bigint as cursor, coalesce(s.drifted, false)::boolean as drifted
from tenants t join placements p on p.tenant_id = t.id left join index_sweeps s on s.tenant_id = t.id
where t.state = 'active' and coalesce(s.began_at, t.created_at) < @before
order by coalesce(s.began_at, t.created_at), t.id limit @most::bigint;

-- name: BeginSweep :exec
insert into index_sweeps as s (tenant_id, began_at, swept_at) select t.id, now(), t.created_at from tenants t where t.id = @tenant_id
on conflict (tenant_id) do update set began_at = excluded.began_at;

-- name: SuspendSweep :exec
-- The tenant is the first of the next slice.
update index_sweeps set began_at = '-infinity', cursor = @cursor, drifted = @drifted where tenant_id = @tenant_id;

-- name: SaveSweepCursor :exec
update index_sweeps set cursor = @cursor, drifted = @drifted where tenant_id = @tenant_id;

-- name: CompleteSweep :exec
update index_sweeps set cursor = 0, swept_at = now(), drifted = false,
    drifted_sweeps = case when @drifted::boolean then drifted_sweeps + 1 else 0 end
where tenant_id = @tenant_id;

-- name: OldestSweep :one
-- The age in seconds of the oldest complete sweep.
select coalesce(extract(epoch from now() - min(coalesce(s.swept_at, t.created_at))), 0)::float8
from tenants t join placements p on p.tenant_id = t.id left join index_sweeps s on s.tenant_id = t.id
where t.state = 'active';

-- name: DriftedSweeps :one
-- The consecutive sweeps with drift of the tenant with the most.
select coalesce(max(s.drifted_sweeps), 0)::int
from tenants t join placements p on p.tenant_id = t.id join index_sweeps s on s.tenant_id = t.id
where t.state = 'active';
