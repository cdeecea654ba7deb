-- name: GetHoldings :one
-- The usage of a user and of the tenant.
select u.memories, u.conversations, t.memories as tenant_memories, t.conversations as tenant_conversations, t.blocked, t.storage,
    ((select count(*) from users x where x.tenant_id = u.tenant_id and x.kind = 'user' and x.active) + t.application_users)::bigint as users
from users u join usage t on t.tenant_id = u.tenant_id
where u.tenant_id = @tenant_id and u.id = @user_id;
