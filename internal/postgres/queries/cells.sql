-- name: ListCells :many
select * from cells order by name;

-- name: CountCells :many
-- The tenants and units that are placed in each cell or move there.
select x.cell, count(*) as tenants, coalesce(sum(u.units), 0)::bigint as units from (
    select p.cell, p.tenant_id from placements p
    union select m.cell, m.tenant_id from placement_migrations m
    union select n.cell, n.tenant_id from embedding_targets n where n.state <> 'cleaning'
) x left join tenant_units u on u.tenant_id = x.tenant_id where x.cell <> '' group by x.cell;

-- name: ApplyCell :exec
insert into cells as c (name, region, max_tenants, max_units, cordoned) values (@name, @region, @max_tenants, @max_units, @cordoned)
on conflict (name) do update set region = excluded.region, max_tenants = excluded.max_tenants, max_units = excluded.max_units, cordoned = excluded.cordoned
where (c.region, c.max_tenants, c.max_units, c.cordoned) is distinct from (excluded.region, excluded.max_tenants, excluded.max_units, excluded.cordoned);

-- name: UpdateCell :exec
update cells c set region = @region, max_tenants = @max_tenants, max_units = @max_units, cordoned = @cordoned
where c.name = @name and (c.region, c.max_tenants, c.max_units, c.cordoned) is distinct from (@region::text, @max_tenants::bigint, @max_units::bigint, @cordoned::boolean);

-- name: DeleteCell :exec
delete from cells where name = @name;

-- name: ListUncountedTenants :many
-- Tenants of a cell whose units were not counted in the last hour, oldest count first.
select p.tenant_id from placements p left join tenant_units u on u.tenant_id = p.tenant_id
where p.cell = @cell and coalesce(u.counted_at < now() - interval '1 hour', true)
order by u.counted_at nulls first limit 100;

-- name: CountTenantUnits :exec
insert into tenant_units (tenant_id, units) select t.id, (select count(*) from units u where u.tenant_id = t.id and u.active) from tenants t where t.id = @tenant_id
on conflict (tenant_id) do update set units = excluded.units, counted_at = now();
