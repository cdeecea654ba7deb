-- name: LockUsage :one
select u.memories, u.conversations, u.blocked, u.storage from usage u where u.tenant_id = @tenant_id for update;

-- name: AwaitUsage :exec
-- Waits for the lock of LockUsage.
select from usage where tenant_id = @tenant_id for update;

-- name: ReserveUsage :execrows
-- Adds to the usage unless that would exceed a quota.
update usage u set memories = u.memories + @memories, storage = u.storage + @storage,
    embedded_tokens = u.embedded_tokens + @embedded
from quotas q where u.tenant_id = @tenant_id and q.tenant_id = u.tenant_id
    and (u.memories + @memories <= q.memories or @memories::bigint <= 0)
    and (u.storage + @storage <= q.storage or @storage::bigint <= 0);

-- name: ReserveUserMemories :execrows
update users u set memories = u.memories + @memories
from quotas q where u.tenant_id = @tenant_id and u.id = @user_id and q.tenant_id = u.tenant_id
    and (u.memories + @memories <= q.user_memories or @memories::bigint <= 0);

-- name: ReleaseUsage :exec
-- Subtracts from the usage of the tenant and then of the user, or adds tokens: no quota limits either.
with released as (
    update usage u set memories = u.memories + @memories, storage = u.storage + @storage, embedded_tokens = u.embedded_tokens + @embedded
    where u.tenant_id = @tenant_id
    returning u.tenant_id
)
update users set memories = users.memories + @memories::bigint
from released where users.tenant_id = released.tenant_id and users.id = @user_id and @memories::bigint <> 0;

-- name: UsageAndQuota :one
select u.memories, u.storage, q.memories as memories_hard, q.storage as storage_hard, q.user_memories as user_memories_hard,
    coalesce(x.memories, 0)::bigint as user_memories
from usage u join quotas q on q.tenant_id = u.tenant_id
left join users x on x.tenant_id = u.tenant_id and x.id = @user_id
where u.tenant_id = @tenant_id;
