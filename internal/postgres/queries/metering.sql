-- name: BeginReport :exec
-- CloseDay waits for the transaction, so that a report is either in the export or on a later day.
select pg_advisory_xact_lock_shared(hashtext('mnemo.metering'));

-- name: InsertReport :execrows
-- Also deletes old reports, which need no job of their own.
with expired as (
    delete from usage_reports where reported_at < now() - @kept::interval
)
insert into usage_reports (id) values (@id) on conflict do nothing;

-- name: AddUsage :exec
-- A day that was exported does not change any more.
insert into usage_days as u (tenant_id, day, requests, changes)
select x.tenant_id, greatest(x.day, e.closed + 1), sum(x.requests), sum(x.changes)
from (select unnest(@tenant_ids::uuid[]) as tenant_id, unnest(@days::date[]) as day,
        unnest(@requests::bigint[]) as requests, unnest(@changes::bigint[]) as changes) x, usage_exports e
group by 1, 2 order by 1, 2
on conflict (tenant_id, day) do update set requests = u.requests + excluded.requests, changes = u.changes + excluded.changes;

-- name: LockReports :exec
select pg_advisory_xact_lock(hashtext('mnemo.metering'));

-- name: LockAllUsage :exec
-- Waits for the transactions that change the usage on the day that ends.
select 1 from usage order by tenant_id for share;

-- name: CloseDay :exec
update usage_exports set closed = greatest(closed, @day::date);

-- name: UsageOfDay :many
-- The tenants that existed on the day. storage and embedded are those of the last change until its end.
with tenants_then as (
    select d.tenant_id, max(d.day) as last from usage_days d group by d.tenant_id having min(d.day) <= @day::date
)
select i.tenant_id, coalesce(t.namespace, '')::text as namespace, coalesce(t.name, '')::text as name,
    coalesce(d.requests, 0)::bigint as requests, coalesce(d.changes, 0)::bigint as changes,
    coalesce(case when u.metered_on <= @day then u.storage else e.storage end, 0)::bigint as storage,
    (coalesce(case when u.metered_on <= @day then u.embedded_tokens else e.embedded end, 0)
        - coalesce(case when u.metered_on < @day then u.embedded_tokens else b.embedded end, 0))::bigint as embedded
from tenants_then i
left join tenants t on t.id = i.tenant_id
left join usage u on u.tenant_id = i.tenant_id
left join usage_days d on d.tenant_id = i.tenant_id and d.day = @day
left join lateral (
    select c.storage, c.embedded from usage_days c
    where c.tenant_id = i.tenant_id and c.day <= @day and c.storage is not null order by c.day desc limit 1
) e on true
left join lateral (
    select c.embedded from usage_days c
    where c.tenant_id = i.tenant_id and c.day < @day and c.storage is not null order by c.day desc limit 1
) b on true
where u.tenant_id is not null or i.last >= @day
order by i.tenant_id;

-- name: ExpireUsage :execrows
-- Keeps the newest expired values of a tenant that exists: they are current until its next change.
delete from usage_days d using (
    select x.tenant_id, x.day from usage_days x
    where x.tenant_id = @tenant_id and x.day < (now() at time zone 'utc')::date - @days::int
        and (not exists (select from usage u where u.tenant_id = x.tenant_id)
            or exists (select from usage_days n where n.tenant_id = x.tenant_id and n.day > x.day
                and n.day < (now() at time zone 'utc')::date - @days::int and n.storage is not null))
    limit @batch
) o
where d.tenant_id = o.tenant_id and d.day = o.day;
