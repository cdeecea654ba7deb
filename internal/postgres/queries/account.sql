-- name: CountAccount :one
select (select count(*) from buckets b where b.tenant_id = @tenant_id and b.user_id = @user_id) as buckets,
    ((select count(*) from live_memories m where m.tenant_id = @tenant_id and m.user_id = @user_id)
        + (select count(*) from merged_memories m where m.tenant_id = @tenant_id and m.user_id = @user_id))::bigint as memories,
    ((select count(*) from memory_versions v join live_memories m on m.tenant_id = v.tenant_id and m.user_id = v.user_id and m.id = v.memory_id
        where v.tenant_id = @tenant_id and v.user_id = @user_id and v.version < m.version)
        + (select count(*) from memory_versions v join merged_memories m on m.tenant_id = v.tenant_id and m.user_id = v.user_id and m.id = v.memory_id
        where v.tenant_id = @tenant_id and v.user_id = @user_id and v.version < m.version))::bigint as versions,
    (select count(*) from live_conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id) as conversations,
    (select count(*) from messages g where g.tenant_id = @tenant_id and g.user_id = @user_id) as messages,
    now()::timestamptz as at;

-- name: EndImports :exec
-- Deletes the imports that still store conversations. Their workers lose the lease.
delete from imports where tenant_id = @tenant_id and user_id = @user_id and (status in ('uploading', 'queued', 'running') or not stored);

-- name: MarkAccount :one
-- The time is not before anything that exists, even if the clock was ahead when it was
-- written. clock_timestamp() is later than now(), which is before the lock was acquired.
select u.memory_seq, greatest(clock_timestamp(),
    (select max(c.imported_at) from conversations c where c.tenant_id = u.tenant_id and c.user_id = u.id),
    (select max(b.created_at) from buckets b where b.tenant_id = u.tenant_id and b.user_id = u.id),
    (select max(i.finished_at) from imports i where i.tenant_id = u.tenant_id and i.user_id = u.id),
    (select max(k.created_at) from idempotency_keys k where k.tenant_id = u.tenant_id and k.user_id = u.id),
    (select max(g.created_at) from oauth_grants g where g.tenant_id = u.tenant_id and g.user_id = u.id))::timestamptz as at
from users u where u.tenant_id = @tenant_id and u.id = @user_id;

-- name: ConversationsToPurge :many
-- Inactive conversations first, so that none of them is activated in between.
select id::text as id from conversations
where tenant_id = @tenant_id and user_id = @user_id and imported_at <= @up_to
order by status = 'active', id limit @batch;

-- name: MemoriesToPurge :many
select id::text as id from memories
where tenant_id = @tenant_id and user_id = @user_id and seq <= @up_to
order by seq limit @batch;

-- name: PurgeBuckets :exec
delete from buckets where tenant_id = @tenant_id and user_id = @user_id and created_at <= @up_to and memories = 0;
