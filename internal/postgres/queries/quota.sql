-- name: LockUsage :one
select u.memories, u.conversations, u.blocked, u.storage from usage u where u.tenant_id = @tenant_id for update;

-- name: AwaitUsage :exec
-- Waits for the lock of LockUsage.
select from usage where tenant_id = @tenant_id for update;

-- name: RequireQuota :exec
-- Fails like require_quota. A concurrent writer can use what is left, unless the transaction holds the lock on the usage row.
select require_quota(@tenant_id, @user_id, @memories, @storage);

-- name: ChargeUsage :exec
-- Adds to the usage of the tenant and then of the user, or fails like require_quota. If a number is positive, the transaction holds the lock on
-- the usage row. Negative numbers release.
with charged as (
    update usage u set memories = u.memories + @memories::bigint, storage = u.storage + @storage::bigint,
        embedded_tokens = u.embedded_tokens + @embedded::bigint
    from (select require_quota(@tenant_id, @user_id, @memories::bigint, @storage::bigint)) allowed
    where u.tenant_id = @tenant_id
    returning u.tenant_id
)
update users set memories = users.memories + @memories::bigint
from charged where users.tenant_id = charged.tenant_id and users.id = @user_id and @memories::bigint <> 0;
