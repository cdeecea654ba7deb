-- name: LockUsage :one
select u.memories, u.conversations, u.blocked, u.storage from usage u where u.tenant_id = @tenant_id for update;

-- name: ReserveUsage :execrows
-- Adds to what the tenant holds unless that would pass its quota.
update usage u set memories = u.memories + @memories, storage = u.storage + @storage
from quotas q where u.tenant_id = @tenant_id and q.tenant_id = u.tenant_id
    and (u.memories + @memories <= q.memories or @memories::bigint <= 0)
    and (u.storage + @storage <= q.storage or @storage::bigint <= 0);

-- name: ReserveUserMemories :execrows
update users u set memories = u.memories + @memories
from quotas q where u.tenant_id = @tenant_id and u.id = @user_id and q.tenant_id = u.tenant_id
    and (u.memories + @memories <= q.user_memories or @memories::bigint <= 0);

-- name: UsageAndQuota :one
select u.memories, u.storage, q.memories as memories_hard, q.storage as storage_hard, q.user_memories as user_memories_hard
from usage u join quotas q on q.tenant_id = u.tenant_id where u.tenant_id = @tenant_id;

-- name: AddConversationUsage :exec
update usage set conversations = conversations + @active, blocked = blocked + @blocked where tenant_id = @tenant_id;

-- name: AddUserConversations :exec
update users set conversations = conversations + @active where tenant_id = @tenant_id and id = @user_id;

-- name: CurrentScopeUser :one
select coalesce(current_setting('mnemo.user', true), '')::text;

-- name: OverUserQuota :many
-- The oldest active conversations of users who hold more than each may.
with ranked as (
    select c.user_id, c.id, row_number() over (partition by c.user_id order by c.updated_at, c.id) as n
    from conversations c
    join users u on u.tenant_id = c.tenant_id and u.id = c.user_id and u.conversations > @hard
    where c.tenant_id = @tenant_id and c.status = 'active'
)
select r.user_id, r.id from ranked r join users u on u.tenant_id = @tenant_id and u.id = r.user_id
where r.n <= u.conversations - @hard limit @batch;

-- name: OldestActive :many
select user_id, id from conversations where tenant_id = @tenant_id and status = 'active' order by updated_at, id limit @batch;

-- name: NewestBlocked :many
-- The newest blocked conversations, no more of a user than there is room for.
-- Those of an import wait until all of it is there.
with ranked as (
    select c.user_id, c.id, c.updated_at, row_number() over (partition by c.user_id order by c.updated_at desc, c.id desc) as n
    from conversations c where c.tenant_id = @tenant_id and c.status = 'blocked'
        and c.import_id <> all (array(select i.id from imports i where i.tenant_id = @tenant_id and not i.landed))
)
select r.user_id, r.id from ranked r
join users u on u.tenant_id = @tenant_id and u.id = r.user_id
where u.conversations + r.n <= @hard
order by r.updated_at desc, r.id desc limit @batch;

-- name: SetConversationStatus :exec
-- Ids are unique within a user, not beyond: two may have taken in one export.
update conversations c set status = @status
from (select unnest(@users::bigint[]) as user_id, unnest(@ids::uuid[]) as id) p
where c.tenant_id = @tenant_id and c.user_id = p.user_id and c.id = p.id;

-- name: SetUnitsActive :many
-- Of conversations, each with its user. The index asks for users and ids.
update units set active = @active, indexed_at = null
where tenant_id = @tenant_id and user_id = any(@users::bigint[]) and conversation_id = any(@ids::uuid[]) and active <> @active
    and (user_id, conversation_id) in (select unnest(@users::bigint[]), unnest(@ids::uuid[]))
returning id;
