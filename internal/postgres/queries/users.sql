-- name: LockUsers :many
select id, name, email, active, issuer from users where tenant_id = @tenant_id and not purging order by name for no key update;

-- name: ListUsers :many
select u.id, u.name, u.email,
    coalesce(t.generation, 0)::bigint as generation, coalesce(t.hash, '')::bytea as hash, coalesce(t.issuer, '')::text as issuer,
    coalesce(t.created_at, now())::timestamptz as created_at, t.last_used_at,
    (t.hash is not null and (t.expires_at is null or t.expires_at > now()))::boolean as valid,
    exists (
        select from tokens o
        where o.tenant_id = u.tenant_id and o.user_id = u.id and o.generation < t.generation and o.expires_at is null
    ) as unrevoked
from users u
left join lateral (
    select * from tokens x where x.tenant_id = u.tenant_id and x.user_id = u.id order by x.generation desc limit 1
) t on true
where u.tenant_id = @tenant_id and u.active and u.issuer is null order by u.name;

-- name: InsertUser :exec
insert into users (tenant_id, name, email) values (@tenant_id, @name, @email);

-- name: SetUser :exec
update users set email = @email, active = @active where tenant_id = @tenant_id and id = @id;

-- name: LockUserByName :one
select id from users where tenant_id = @tenant_id and name = @name and active for no key update;

-- name: NewestGeneration :one
select coalesce(max(generation), 0)::bigint from tokens where tenant_id = @tenant_id and user_id = @user_id;

-- name: InsertToken :exec
insert into tokens (tenant_id, user_id, generation, hash, issuer)
values (@tenant_id, @user_id, @generation, @hash, @issuer);

-- name: RevokeTokens :many
-- Ends the user's tokens below a generation, an overlap after that one was
-- made. An end that comes sooner stays.
with ends as (
    select greatest(now(), coalesce((
        select n.created_at from tokens n
        where n.tenant_id = @tenant_id and n.user_id = @user_id and n.generation = @below
    ), now()) + @overlap::interval) as at
)
update tokens t set expires_at = ends.at from ends
where t.tenant_id = @tenant_id and t.user_id = @user_id and t.generation < @below
    and (t.expires_at is null or t.expires_at > ends.at)
returning t.hash;

-- name: NotifyToken :exec
select pg_notify('mnemo_identity', 'token:' || encode(@hash::bytea, 'hex'));

-- name: RevokeTenantTokens :exec
update tokens set expires_at = now() where tenant_id = @tenant_id and (expires_at is null or expires_at > now());

-- name: Identify :one
select t.tenant_id, t.user_id, t.hash, t.generation, t.last_used_at,
    coalesce(extract(epoch from t.expires_at - now()), 0)::float8 as expires_in, n.name as tenant_name, u.name as user_name, n.suspended,
    q.memories, q.conversations, q.storage, q.users, q.requests_per_minute, q.list_tokens, q.user_memories, q.user_conversations,
    coalesce(p.collection, '') as collection, coalesce(p.partition, '') as partition, coalesce(p.shared, false) as shared,
    (t.last_used_at is null or t.last_used_at < now() - interval '1 minute')::boolean as stale
from tokens t
join users u on u.tenant_id = t.tenant_id and u.id = t.user_id and u.active
join tenants n on n.id = t.tenant_id and n.state = 'active'
join quotas q on q.tenant_id = t.tenant_id
left join placements p on p.tenant_id = t.tenant_id
where t.hash = @hash and (t.expires_at is null or t.expires_at > now());

-- name: TouchToken :exec
-- Of many replicas that ask at once, one writes.
update tokens set last_used_at = now() where tenant_id = @tenant_id and user_id = @user_id and generation = @generation
    and (last_used_at is null or last_used_at < now() - interval '1 minute');
