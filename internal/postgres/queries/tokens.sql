-- name: NewestToken :one
select generation, hash, issuer, created_at, last_used_at, expires_at, (expires_at is null or expires_at > now())::boolean as valid
from tokens where tenant_id = @tenant_id and user_id = @user_id order by generation desc limit 1;

-- name: InstallToken :execrows
-- The user must be locked. Inserts nothing unless the generation is newer than all others.
with t as (
    insert into tokens (tenant_id, user_id, generation, hash, issuer)
    select @tenant_id, @user_id, @generation, @hash, @issuer
    where @generation > (select coalesce(max(x.generation), 0) from tokens x where x.tenant_id = @tenant_id and x.user_id = @user_id)
    returning tenant_id, user_id
)
update users u set password_hash = coalesce(sqlc.narg('password_hash')::bytea, u.password_hash),
    password_replaced = u.password_replaced and sqlc.narg('password_hash')::bytea is null
from t where u.tenant_id = t.tenant_id and u.id = t.user_id;

-- name: NewestGeneration :one
select coalesce(max(generation), 0)::bigint from tokens where tenant_id = @tenant_id and user_id = @user_id;

-- name: InsertToken :exec
-- A token of a user of an identity provider ends after a time, because the provider
-- does not tell when it removes the user.
insert into tokens (tenant_id, user_id, generation, hash, issuer, expires_at)
select @tenant_id, @user_id, @generation, @hash, @issuer, case when u.issuer is not null then now() + @external_life::interval end
from users u where u.tenant_id = @tenant_id and u.id = @user_id;

-- name: RevokeTokens :many
-- Expires the user's tokens below a generation, an overlap after that generation
-- was created. An earlier expiry is kept. Those that end now are revoked as of a day ago, as in RevokeUserToken.
with ends as (
    select greatest(now(), coalesce((
        select n.created_at from tokens n
        where n.tenant_id = @tenant_id and n.user_id = @user_id and n.generation = @below
    ), now()) + @overlap::interval) as at
)
update tokens t set expires_at = case when ends.at > now() then ends.at else now() - interval '1 day' end from ends
where t.tenant_id = @tenant_id and t.user_id = @user_id and t.generation < @below
    and (t.expires_at is null or t.expires_at > ends.at)
returning t.hash;

-- name: NotifyToken :exec
select pg_notify('mnemo_identity', 'token:' || encode(@hash::bytea, 'hex'));

-- name: RevokeTenantTokens :execrows
update tokens set expires_at = now() - interval '1 day' where tenant_id = @tenant_id and (expires_at is null or expires_at > now());

-- name: Identify :one
-- Of a token of either kind: one of generations, or one that the user created, which has an id
-- and scopes of its own. The limit makes PostgreSQL look up the placement of this user. It plans at
-- most eight relations together, the view user_placements has seven, and a join would read those of all tenants.
with t as (
    select o.tenant_id, o.user_id, o.hash, o.generation, ''::text as id, '{}'::text[] as scopes, o.expires_at, o.last_used_at
    from tokens o where o.hash = @hash and (o.expires_at is null or o.expires_at > now())
    union all
    select h.tenant_id, h.user_id, h.hash, 0, h.id::text, h.scopes, h.expires_at, h.last_used_at
    from user_token_holder(@hash) h
)
select t.hash::bytea as hash, t.generation::bigint as generation, t.id::text as token_id,
    coalesce(extract(epoch from t.expires_at - now()), 0)::float8 as expires_in, n.name as tenant_name, u.name as user_name, n.suspended,
    sqlc.embed(quotas), sqlc.embed(user_placements),
    (t.last_used_at is null or t.last_used_at < now() - interval '1 minute')::boolean as stale,
    u.kind = 'application' as application, coalesce(a.scopes, t.scopes)::text[] as scopes, coalesce(a.allowed_origins, '{}')::text[] as allowed_origins,
    coalesce(a.requests_per_minute, 0)::bigint as application_requests_per_minute
from t
join users u on u.tenant_id = t.tenant_id and u.id = t.user_id and u.active
join tenants n on n.id = t.tenant_id and n.state = 'active'
join quotas on quotas.tenant_id = t.tenant_id
cross join lateral (select * from user_placements x where x.tenant_id = t.tenant_id and x.user_id = t.user_id limit 1) user_placements
left join applications a on a.tenant_id = t.tenant_id and a.user_id = t.user_id;

-- name: TouchToken :exec
-- Of several concurrent replicas, only one writes.
update tokens set last_used_at = now() where tenant_id = @tenant_id and user_id = @user_id and generation = @generation
    and (last_used_at is null or last_used_at < now() - interval '1 minute');

-- name: ShortenOverlaps :many
-- Applies a possibly shorter overlap: expires old tokens that would stay valid for
-- longer than the overlap after the next one was created.
update tokens t set expires_at = case when e.at > now() then e.at else now() - interval '1 day' end
from (
    select x.tenant_id, x.user_id, x.generation, greatest(now(), (
        select min(n.created_at) from tokens n
        where n.tenant_id = x.tenant_id and n.user_id = x.user_id and n.generation > x.generation
    ) + @overlap::interval) as at
    from tokens x where x.tenant_id = @tenant_id and x.expires_at > now()
) e
where t.tenant_id = e.tenant_id and t.user_id = e.user_id and t.generation = e.generation and t.expires_at > e.at
returning t.hash;
