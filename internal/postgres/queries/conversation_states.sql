-- name: LockConversationStates :many
select id::text as id, status from conversations
where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[])
order by id for update;

-- name: PinConversations :exec
update conversations set pinned = @pinned
where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]) and pinned <> @pinned;

-- name: GetBalance :one
-- The active and blocked conversations with the quotas, and the scope. active_of_user is 0 for user 0, which is all users.
select u.conversations as active, u.blocked, q.conversations as hard, q.user_conversations as user_hard,
    coalesce((select x.conversations from users x where x.tenant_id = u.tenant_id and x.id = @user_id), 0)::bigint as active_of_user,
    coalesce(current_setting('mnemo.user', true), '')::text as scope
from usage u join quotas q on q.tenant_id = u.tenant_id where u.tenant_id = @tenant_id;

-- name: OverUserQuota :many
-- The oldest active conversations of all users over their quota. Reads all users of the tenant.
with ranked as (
    select c.user_id, c.id, row_number() over (partition by c.user_id order by c.updated_at, c.id) as n
    from conversations c
    join users u on u.tenant_id = c.tenant_id and u.id = c.user_id and u.conversations > @hard
    where c.tenant_id = @tenant_id and c.status = 'active'
)
select r.user_id, r.id from ranked r join users u on u.tenant_id = @tenant_id and u.id = r.user_id
where r.n <= u.conversations - @hard limit @batch;

-- name: OldestActiveOfUser :many
select id from conversations where tenant_id = @tenant_id and user_id = @user_id and status = 'active'
order by updated_at, id limit @batch;

-- name: OldestActive :many
select user_id, id from conversations where tenant_id = @tenant_id and status = 'active' order by updated_at, id limit @batch;

-- name: NewestBlocked :many
-- The newest blocked conversations, within the quota of each user. Conversations
-- of an import follow when the whole file is stored. Reads all blocked conversations of the tenant.
with ranked as (
    select c.user_id, c.id, c.updated_at, row_number() over (partition by c.user_id order by c.updated_at desc, c.id desc) as n
    from conversations c where c.tenant_id = @tenant_id and c.status = 'blocked'
        and c.import_id <> all (array(select i.id from imports i where i.tenant_id = @tenant_id and not i.stored))
)
select r.user_id, r.id from ranked r
join users u on u.tenant_id = @tenant_id and u.id = r.user_id
where u.conversations + r.n <= @hard
order by r.updated_at desc, r.id desc limit @batch;

-- name: NewestBlockedOfUser :many
-- Like NewestBlocked, of one user. The index conversations_blocked has the order.
select c.id from conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.status = 'blocked'
    and c.import_id <> all (array(select i.id from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and not i.stored))
order by c.updated_at desc, c.id desc limit @batch;

-- name: SetConversationStatus :exec
-- Ids are unique per user only: two users may have restored the same export.
update conversations c set status = @status
from (select unnest(@users::bigint[]) as user_id, unnest(@ids::uuid[]) as id) p
where c.tenant_id = @tenant_id and c.user_id = p.user_id and c.id = p.id;

-- name: SetUnitsActive :many
-- The conditions on users and ids match the index; the pairs are exact.
update units set active = @active, indexed_at = null
where tenant_id = @tenant_id and user_id = any(@users::bigint[]) and conversation_id = any(@ids::uuid[]) and active <> @active
    and (user_id, conversation_id) in (select unnest(@users::bigint[]), unnest(@ids::uuid[]))
returning id;

-- name: AddConversationUsage :exec
update usage set conversations = conversations + @active, blocked = blocked + @blocked where tenant_id = @tenant_id;

-- name: AddUserConversations :exec
update users set conversations = conversations + @active where tenant_id = @tenant_id and id = @user_id;
