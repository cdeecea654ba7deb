-- name: GetPlacement :many
-- Returns at most one row.
select p.cell, p.collection, p.partition, p.shared, p.partition_id, p.generation, coalesce(g.id, 0)::smallint as generation_id, coalesce(g.dimensions, 0)::integer as dimensions,
    coalesce(m.cell, '')::text as target_cell, coalesce(m.collection, '')::text as target_collection, coalesce(m.partition, '')::text as target_partition,
    coalesce(m.shared, false)::boolean as target_shared, coalesce(m.partition_id, 0)::bigint as target_partition_id,
    coalesce(m.run, 0)::bigint as run, coalesce(m.cursor, 0)::bigint as cursor,
    coalesce(m.heartbeat_at < now() - make_interval(secs => @stall_seconds::float8), false)::boolean as stalled,
    coalesce(g.model, g.name, '')::text as model,
    coalesce(n.cell, '')::text as next_cell, coalesce(n.collection, '')::text as next_collection, coalesce(n.partition, '')::text as next_partition,
    coalesce(n.shared, false)::boolean as next_shared, coalesce(n.partition_id, 0)::bigint as next_partition_id,
    coalesce(ng.id, 0)::smallint as next_generation_id, coalesce(ng.dimensions, 0)::integer as next_dimensions,
    coalesce(n.cursor, 0)::bigint as next_cursor, coalesce(n.state, '')::text as next_state, coalesce(ng.model, ng.name, '')::text as next_model,
    (t.outgrown_at is not null)::boolean as outgrown
from placements p join tenants t on t.id = p.tenant_id left join placement_migrations m on m.tenant_id = p.tenant_id left join embedding_generations g on g.name = p.generation
left join embedding_targets n on n.tenant_id = p.tenant_id and n.state <> 'cleaning' left join embedding_generations ng on ng.name = n.generation
where p.tenant_id = @tenant_id;

-- name: GetTenantLocation :one
select t.isolation, (t.outgrown_at is not null)::boolean as outgrown, t.cell as requested_cell, t.region as requested_region, coalesce(p.cell, '')::text as cell, coalesce(p.collection, '')::text as collection, coalesce(p.partition, '')::text as partition,
    coalesce(p.shared, false)::boolean as shared, coalesce(g.dimensions, 0)::integer as dimensions
from tenants t left join placements p on p.tenant_id = t.id left join embedding_generations g on g.name = p.generation
where t.id = @tenant_id and t.state = 'active' for share of t;

-- name: LockPlacement :exec
select from placements where tenant_id = @tenant_id for update;

-- name: SharePlacement :exec
select from placements where tenant_id = @tenant_id for share;

-- name: GetPlacementRequest :one
select isolation, cell, region from tenants where id = @id and state = 'active' for share;

-- name: LockCollections :exec
-- Serializes the assignment of locations, so that no collection exceeds its capacity.
select pg_advisory_xact_lock(hashtext('mnemo.placement'));

-- name: CountCollectionTenants :many
select x.collection, count(*) as tenants from (
    select p.collection from placements p where p.cell = @cell and p.generation = @generation and p.shared = @shared::boolean
    union all select m.collection from placement_migrations m where m.cell = @cell and m.generation = @generation and m.shared = @shared::boolean
    union all select n.collection from embedding_targets n where n.cell = @cell and n.generation = @generation and n.shared = @shared::boolean and n.state <> 'cleaning'
) x group by x.collection;

-- name: InsertPlacement :exec
-- Notifies the replicas, whose cached identities contain the placement.
with p as (
    insert into placements (tenant_id, generation, cell, collection, partition, shared)
    values (@tenant_id, @generation, @cell, @collection, @partition, @shared) returning tenant_id
)
select pg_notify('mnemo_identity', 'tenant:' || tenant_id) from p;

-- name: SetFirstPartitionID :execrows
-- For a tenant without units: the new partition needs no migration.
update placements p set partition_id = @partition_id
where p.tenant_id = @tenant_id and p.partition_id = 0 and p.cell = @cell and p.collection = @collection and p.partition = @partition
    and exists (select from tenants t where t.id = p.tenant_id and t.state = 'active')
    and not exists (select from placement_migrations m where m.tenant_id = p.tenant_id)
    and not exists (select from units u where u.tenant_id = p.tenant_id);

-- name: SetPartitionID :exec
update placements set partition_id = @partition_id where tenant_id = @tenant_id;

-- name: ListTenantsInPartition :many
-- Tenants whose current or target partition has the id: one tenant, or all of a shared collection. Another cell can assign the same ids.
select p.tenant_id, p.partition from placements p
where p.cell = @cell and p.collection = @collection and p.partition_id = @partition_id and (@shared::boolean or p.partition = @partition)
union all
select m.tenant_id, m.partition from placement_migrations m
where m.cell = @cell and m.collection = @collection and m.partition_id = @partition_id and (@shared::boolean or m.partition = @partition)
union all
select n.tenant_id, n.partition from embedding_targets n
where n.cell = @cell and n.collection = @collection and n.partition_id = @partition_id and (@shared::boolean or n.partition = @partition) and n.state <> 'cleaning';

-- name: LatestPartitionID :one
-- A rebuild has the id of its placement, so only migrations to another location count.
select greatest(
    (select max(p.partition_id) from placements p join tenants t on t.id = p.tenant_id
        where p.shared and p.cell = @cell and p.collection = @collection and t.state = 'active'),
    (select max(m.partition_id) from placement_migrations m join tenants t on t.id = m.tenant_id join placements p on p.tenant_id = m.tenant_id
        where m.shared and m.cell = @cell and m.collection = @collection and t.state = 'active' and p.partition <> m.partition),
    (select max(n.partition_id) from embedding_targets n where n.shared and n.cell = @cell and n.collection = @collection and n.state <> 'cleaning'),
    0)::bigint;
