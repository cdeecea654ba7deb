-- name: NextPartitionNumber :one
select nextval('placement_ids')::bigint;

-- name: PlacementGeneration :one
select generation from placements where tenant_id = @tenant_id;

-- name: StartMigration :one
-- Starts over with a new run if the tenant has a migration.
insert into placement_migrations (tenant_id, generation, cell, collection, partition, shared, partition_id)
select p.tenant_id, p.generation, @cell, @collection, @partition, @shared, @partition_id from placements p where p.tenant_id = @tenant_id
on conflict (tenant_id) do update set generation = excluded.generation, cell = excluded.cell, collection = excluded.collection,
    partition = excluded.partition, shared = excluded.shared, partition_id = excluded.partition_id,
    cursor = 0, run = nextval('placement_ids'), heartbeat_at = now()
returning run;

-- name: RestartMigration :one
-- Keeps the cursor.
update placement_migrations set run = nextval('placement_ids'), heartbeat_at = now() where tenant_id = @tenant_id returning run;

-- name: AdvanceMigration :execrows
update placement_migrations set cursor = greatest(cursor, @cursor), heartbeat_at = now() where tenant_id = @tenant_id and run = @run;

-- name: MovePlacementToTarget :exec
update placements p set generation = m.generation, cell = m.cell, collection = m.collection, partition = m.partition, shared = m.shared, partition_id = m.partition_id
from placement_migrations m where p.tenant_id = @tenant_id and m.tenant_id = p.tenant_id;

-- name: LeaveIndex :exec
update placements set cell = '', collection = '', shared = false, partition_id = 0 where tenant_id = @tenant_id;

-- name: LeaveIndexOfTarget :exec
update embedding_targets set cell = '', collection = '', shared = false, partition_id = 0 where tenant_id = @tenant_id and state <> 'cleaning';

-- name: DeleteMigration :exec
delete from placement_migrations where tenant_id = @tenant_id;

-- name: HasUnits :one
select exists (select from units where tenant_id = @tenant_id);

-- name: UnindexUnits :one
-- Counts the selected units, not the written ones: others may delete units of the batch meanwhile.
with batch as materialized (
    select u.id from units u where u.tenant_id = @tenant_id and u.id > @after and u.active and u.indexed_at is not null order by u.id limit @batch
), unindexed as (
    update units u set indexed_at = null
    where u.tenant_id = @tenant_id and u.id = any(array(select b.id from batch b)) and u.active and u.indexed_at is not null
)
select count(*) as units, coalesce(max(b.id), 0)::bigint as last from batch b;
