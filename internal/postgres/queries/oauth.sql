-- name: ExpireClients :exec
-- Deletes unused clients: those never used within a month, the oldest above the
-- limit, and those not used for 90 days.
delete from oauth_clients where id in (
    (select c.id from oauth_clients c where c.used_at is null order by c.created_at desc offset @kept limit 100)
    union all
    (select c.id from oauth_clients c where c.used_at is null and c.created_at <= now() - interval '30 days' limit 100)
    union all
    (select c.id from oauth_clients c where c.used_at <= now() - interval '90 days' limit 100));

-- name: InsertClient :exec
insert into oauth_clients (id, name, redirect_uris) values (@id, @name, @redirect_uris);

-- name: GetClient :one
select id, name, redirect_uris, created_at from oauth_clients where id = @id;

-- name: TouchClient :exec
-- At most one write per day, for clients with many users.
update oauth_clients set used_at = now() where id = @id and (used_at is null or used_at < now() - interval '1 day');

-- name: InsertGrant :many
-- No rows if the session has ended. Serializes with transactions that end it.
insert into oauth_grants (tenant_id, user_id, client_id, password_hash, redirect_uri, challenge)
select h.tenant_id, h.user_id, @client_id, h.password_hash, @redirect_uri, @challenge
from (
    select s.tenant_id, s.user_id, s.password_hash
    from sessions s
    join users u on u.tenant_id = s.tenant_id and u.id = s.user_id and u.active
        and u.password_hash is not distinct from s.password_hash
    join tenants n on n.id = s.tenant_id and n.state = 'active' and not n.suspended
    where s.hash = @session and s.tenant_id = @tenant_id and s.user_id = @user_id and not s.one_time and s.expires_at > now()
    for share of u, n
) h
returning id;

-- name: InsertSecret :exec
-- No secret outlives its grant, however often it is refreshed.
insert into oauth_secrets (hash, tenant_id, user_id, grant_id, kind, expires_at)
select @hash, g.tenant_id, g.user_id, g.id, @kind, least(now() + @life::interval, g.created_at + @grant_life::interval)
from oauth_grants g where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = @grant_id;

-- name: TidyGrants :exec
-- Deletes expired grants, and all but the newest of the others.
delete from oauth_grants g where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id not in (
    select l.id from oauth_grants l
    where l.tenant_id = @tenant_id and l.user_id = @user_id and exists (
        select from oauth_secrets s where s.tenant_id = l.tenant_id and s.user_id = l.user_id and s.grant_id = l.id
            and s.kind <> 'access' and not s.used and s.expires_at > now())
    order by l.created_at desc, l.id limit @kept);

-- name: HolderOf :one
select tenant_id::uuid as tenant_id, user_id::bigint as user_id, coalesce(oauth_app(@hash::bytea), '')::text as app
from oauth_holder(@hash::bytea, @kind::text);

-- name: LockSecret :one
-- A secret, used or not; serializes concurrent uses.
select g.id, g.client_id, g.redirect_uri, g.challenge, s.used
from oauth_secrets s join oauth_grants g on g.tenant_id = s.tenant_id and g.user_id = s.user_id and g.id = s.grant_id
where s.tenant_id = @tenant_id and s.user_id = @user_id and s.hash = @hash and s.kind = @kind
    and (s.used or s.expires_at > now())
for update of g, s;

-- name: UseSecret :exec
update oauth_secrets set used = true where tenant_id = @tenant_id and user_id = @user_id and hash = @hash;

-- name: RefreshGrant :exec
update oauth_grants set refreshed_at = now() where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: TidySecrets :exec
-- Deletes a grant's expired secrets, and all but the newest of the others.
delete from oauth_secrets where hash in (
    select l.hash
    from (
        select s.hash, s.kind, s.expires_at, row_number() over (partition by s.kind order by s.expires_at desc) as age
        from oauth_secrets s
        where s.tenant_id = @tenant_id and s.user_id = @user_id and s.grant_id = @grant_id and s.kind <> 'code'
    ) l
    where l.expires_at <= now() or l.age > case l.kind when 'access' then @access::bigint else @refresh::bigint end);

-- name: DeleteGrant :execrows
delete from oauth_grants where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: DeleteGrants :exec
-- For one user, or for all users of the tenant (0).
delete from oauth_grants where tenant_id = @tenant_id and (user_id = @user_id or @user_id = 0);

-- name: PurgeGrants :exec
delete from oauth_grants where tenant_id = @tenant_id and user_id = @user_id and created_at <= @up_to;

-- name: ListGrants :many
-- Grants that can still be used, newest first.
select g.id::text as id, c.id::text as client_id, c.name, g.redirect_uri, g.created_at, g.refreshed_at
from oauth_grants g
join oauth_clients c on c.id = g.client_id
join users u on u.tenant_id = g.tenant_id and u.id = g.user_id and u.password_hash is not distinct from g.password_hash
where g.tenant_id = @tenant_id and g.user_id = @user_id and exists (
    select from oauth_secrets s where s.tenant_id = g.tenant_id and s.user_id = g.user_id and s.grant_id = g.id
        and s.kind = 'refresh' and not s.used and s.expires_at > now())
order by g.created_at desc, g.id;

-- name: NotifyUser :exec
select pg_notify('mnemo_identity', 'user:' || @tenant_id::text || ':' || @user_id::bigint);

-- name: IdentifyHolder :one
-- The placement has a limit, as in Identify.
select h.expires_in::float8 as expires_in,
    coalesce(oauth_app(@hash::bytea), '')::text as app, n.name as tenant_name, u.name as user_name, n.suspended,
    sqlc.embed(quotas), sqlc.embed(user_placements)
from oauth_holder(@hash::bytea, @kind::text) h
join users u on u.tenant_id = h.tenant_id::uuid and u.id = h.user_id::bigint
join tenants n on n.id = h.tenant_id::uuid and n.state = 'active'
join quotas on quotas.tenant_id = h.tenant_id::uuid
cross join lateral (select * from user_placements x where x.tenant_id = h.tenant_id::uuid and x.user_id = h.user_id::bigint limit 1) user_placements
where h.expires_in::float8 > 0;
