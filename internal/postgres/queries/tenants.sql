-- name: FindUpToDateTenant :many
-- The tenant of a resource, and its quota, if its settings equal the parameters.
select t.id, sqlc.embed(q) from tenants t join quotas q on q.tenant_id = t.id
where t.resource = @resource and t.state = 'active' and t.namespace_uid is not null
    and (t.display_name, t.suspended, t.deletion_policy, t.isolation, t.cell, t.region, t.token_overlap, t.administrators)
        is not distinct from (@display_name::text, @suspended::boolean, @deletion_policy::text, @isolation::text, @cell::text, @region::text, @token_overlap::interval, @administrators::text[]);

-- name: CreateTenant :exec
-- Inserts the tenant, its usage, quota and users in one round trip, because
-- a thousand tenants may be created at once.
with t as (
    insert into tenants (id, resource, cluster, namespace, namespace_uid, name, display_name, suspended, deletion_policy, isolation, cell, region, token_overlap, administrators)
    values (@id, @id, @cluster, @namespace, @namespace_uid, @name, @display_name, @suspended, @deletion_policy, @isolation, @cell, @region, @token_overlap, @administrators)
    returning id
), u as (
    insert into usage (tenant_id) select id from t
), q as (
    insert into quotas (tenant_id, memories, conversations, storage, users, requests_per_minute, page_tokens, user_memories, user_conversations)
    select id, @memories, @conversations, @storage, @users, @requests_per_minute, @page_tokens, @user_memories, @user_conversations from t
)
insert into users (tenant_id, name, email) select id, unnest(@names::text[]), unnest(@emails::text[]) from t;

-- name: UpdateTenant :many
-- Returns whether the tenant was suspended before; no row if nothing changed.
update tenants t set display_name = @display_name, suspended = @suspended, deletion_policy = @deletion_policy,
    isolation = @isolation, cell = @cell, region = @region, token_overlap = @token_overlap, administrators = @administrators, updated_at = now()
where t.id = @id and (t.display_name, t.suspended, t.deletion_policy, t.isolation, t.cell, t.region, t.token_overlap, t.administrators)
    is distinct from (@display_name::text, @suspended::boolean, @deletion_policy::text, @isolation::text, @cell::text, @region::text, @token_overlap::interval, @administrators::text[])
returning (select o.suspended from tenants o where o.id = t.id) as was_suspended;

-- name: SetQuota :execrows
insert into quotas as q (tenant_id, memories, conversations, storage, users, requests_per_minute, page_tokens, user_memories, user_conversations)
values (@tenant_id, @memories, @conversations, @storage, @users, @requests_per_minute, @page_tokens, @user_memories, @user_conversations)
on conflict (tenant_id) do update set memories = excluded.memories, conversations = excluded.conversations,
    storage = excluded.storage, users = excluded.users, requests_per_minute = excluded.requests_per_minute,
    page_tokens = excluded.page_tokens, user_memories = excluded.user_memories, user_conversations = excluded.user_conversations
where (q.memories, q.conversations, q.storage, q.users, q.requests_per_minute, q.page_tokens, q.user_memories, q.user_conversations)
    is distinct from (excluded.memories, excluded.conversations, excluded.storage, excluded.users,
        excluded.requests_per_minute, excluded.page_tokens, excluded.user_memories, excluded.user_conversations);

-- name: GetUsage :one
select u.memories, u.conversations, u.blocked, u.storage,
    ((select count(*) from users x where x.tenant_id = u.tenant_id and x.kind = 'user' and x.active) + u.application_users)::bigint as users
from usage u join tenants t on t.id = u.tenant_id
where t.id = @tenant_id and t.state = 'active';

-- name: ActiveTenant :one
select id from tenants where id = @id and state = 'active' for share;

-- name: RetireTenant :one
-- Purging is final: a later Retain does not cancel it. If nothing changes, the row is not written: the operator reconciles the tenant of each written row.
with o as (
    select x.id, x.state from tenants x where x.resource = @resource for no key update
), u as (
    update tenants t set state = case when t.state = 'purging' then t.state else @state end, deletion_policy = @deletion_policy,
        retired_at = coalesce(t.retired_at, now()), updated_at = now()
    from o where t.id = o.id and (t.state, t.deletion_policy, t.retired_at is null)
        is distinct from (case when t.state = 'purging' then t.state else @state end, @deletion_policy::text, false)
    returning t.id, t.state
)
select o.id, coalesce(u.state, o.state)::text as state, o.state as before from o left join u on u.id = o.id;

-- name: ActiveTenants :many
select id from tenants where state = 'active' order by id;

-- name: CountRemaining :one
select (select count(*) from memories m where m.tenant_id = @tenant_id) as memories,
    (select count(*) from conversations c where c.tenant_id = @tenant_id) as conversations;

-- name: PurgeConversations :execrows
-- A batch in the order of an index: PostgreSQL would otherwise scan a table that mostly contains this tenant, and read the space of all earlier
-- batches again.
delete from conversations c where c.tenant_id = @tenant_id
    and c.ctid = any(array(select x.ctid from conversations x where x.tenant_id = @tenant_id order by x.user_id, x.id limit @batch));

-- name: PurgeMemories :execrows
-- See PurgeConversations.
delete from memories m where m.tenant_id = @tenant_id
    and m.ctid = any(array(select x.ctid from memories x where x.tenant_id = @tenant_id order by x.user_id, x.id limit @batch));

-- name: PurgeUsers :execrows
-- Deletes some users, who have no data any more. Their names and addresses do not wait for the index.
with emptied as (
    update usage s set memories = 0, conversations = 0, blocked = 0, storage = 0, application_users = 0
    where s.tenant_id = @tenant_id and (s.memories, s.conversations, s.blocked, s.storage, s.application_users) is distinct from (0, 0, 0, 0, 0)
)
delete from users u where u.tenant_id = @tenant_id
    and u.ctid = any(array(select x.ctid from users x where x.tenant_id = @tenant_id order by x.id limit @batch));

-- name: DeletePurgedTenant :exec
delete from tenants where id = @id and state = 'purging';

-- name: NotifyTenant :exec
select pg_notify('mnemo_identity', 'tenant:' || @tenant_id::text);

-- name: LockPurging :many
select id from tenants where id = @id and state = 'purging' for update;
