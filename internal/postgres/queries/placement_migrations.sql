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
