-- name: GetPlaces :many
-- One row, or none. A place that is being filled counts from when it was made.
select p.collection, p.partition, p.shared, p.made,
    coalesce(f.collection, '')::text as filling_collection, coalesce(f.partition, '')::text as filling_partition,
    coalesce(f.shared, false)::boolean as filling_shared, coalesce(f.made, 0)::bigint as filling_made,
    coalesce(f.run, 0)::bigint as run, coalesce(f.upto, 0)::bigint as upto,
    coalesce(f.heard_at < now() - interval '1 minute', false)::boolean as unheard
from placements p left join fills f on f.tenant_id = p.tenant_id
where p.tenant_id = @tenant_id;

-- name: LockPlaces :exec
select from placements where tenant_id = @tenant_id for update;

-- name: TenantIsolation :one
select isolation from tenants where id = @id and state = 'active' for share;

-- name: LockPlacing :exec
select pg_advisory_xact_lock(hashtext('mnemo.place'));

-- name: CollectionLoad :many
select x.collection, count(*) as places from (
    select p.collection from placements p where p.generation = @generation and p.shared = @shared::boolean
    union all select f.collection from fills f where f.generation = @generation and f.shared = @shared::boolean
) x group by x.collection;

-- name: PlaceNumber :one
select nextval('place_ids')::bigint;

-- name: SetPlacementMade :exec
update placements set made = @made where tenant_id = @tenant_id;

-- name: SetPlacement :exec
-- Makes the place that was filled the tenant's.
update placements p set generation = f.generation, collection = f.collection, partition = f.partition, shared = f.shared, made = f.made
from fills f where p.tenant_id = @tenant_id and f.tenant_id = p.tenant_id;

-- name: SetFill :one
-- Begins the filling of a place anew, as another run.
insert into fills as f (tenant_id, generation, collection, partition, shared, made)
values (@tenant_id, @generation, @collection, @partition, @shared, @made)
on conflict (tenant_id) do update set generation = excluded.generation, collection = excluded.collection,
    partition = excluded.partition, shared = excluded.shared, made = excluded.made,
    upto = 0, run = nextval('place_ids'), heard_at = now()
returning run;

-- name: RunFillAgain :one
update fills set run = nextval('place_ids'), heard_at = now() where tenant_id = @tenant_id returning run;

-- name: AdvanceFill :execrows
update fills set upto = greatest(upto, @upto), heard_at = now() where tenant_id = @tenant_id and run = @run;

-- name: DeleteFill :exec
delete from fills where tenant_id = @tenant_id;

-- name: HasUnits :one
select exists (select from units where tenant_id = @tenant_id);

-- name: TenantsAt :many
-- Who is, or is being moved, where Milvus had this number: one, or all of a
-- shared collection.
select p.tenant_id, p.partition from placements p
where p.collection = @collection and p.made = @made and (@shared::boolean or p.partition = @partition)
union all
select f.tenant_id, f.partition from fills f
where f.collection = @collection and f.made = @made and (@shared::boolean or f.partition = @partition);

-- name: KnownMade :one
-- The newest number by which a tenant that is used knows a shared collection. A
-- rebuilding has the number of its placement.
select greatest(
    (select max(p.made) from placements p join tenants t on t.id = p.tenant_id
        where p.shared and p.collection = @collection and t.state = 'active'),
    (select max(f.made) from fills f join tenants t on t.id = f.tenant_id join placements p on p.tenant_id = f.tenant_id
        where f.shared and f.collection = @collection and t.state = 'active' and p.partition <> f.partition),
    0)::bigint;
