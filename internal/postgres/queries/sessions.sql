-- name: CountAttempt :one
-- Counts an attempt in the current window, or starts one.
insert into sign_in_attempts as a (key, began_at, attempts) values (@key, now(), 1)
on conflict (key) do update set
    attempts = case when a.began_at > now() - @span::interval then a.attempts + 1 else 1 end,
    began_at = case when a.began_at > now() - @span::interval then a.began_at else now() end
returning attempts, extract(epoch from now() - began_at)::float8 as age;

-- name: ForgetAttempts :exec
delete from sign_in_attempts where key = @key;

-- name: ForgiveAttempt :exec
update sign_in_attempts set attempts = attempts - 1 where key = @key and attempts > 0;

-- name: ExpireAttempts :exec
delete from sign_in_attempts where key in (
    select o.key from sign_in_attempts o where o.began_at <= now() - @span::interval limit 100 for update skip locked);

-- name: FindAccounts :many
-- Several clusters may have a tenant with this namespace and name, and several namespaces
-- one with this name.
select u.tenant_id, u.id, u.password_hash, n.suspended
from tenants n
join users u on u.tenant_id = n.id and u.name = @user_name and u.active and u.password_hash is not null
where (n.namespace = @namespace or @namespace = '') and n.name = @tenant_name and n.state = 'active';

-- name: InsertSession :execrows
insert into sessions (hash, tenant_id, user_id, password_hash, expires_at, authenticated_at)
select @hash, u.tenant_id, u.id, u.password_hash, now() + @lifetime::interval, now()
from users u where u.tenant_id = @tenant_id and u.id = @user_id and u.active and u.password_hash = @password_hash::bytea;

-- name: GetSession :one
-- The placement has a limit, as in Identify.
select s.hash, n.namespace, n.name as tenant_name, n.display_name, u.name as user_name,
    case when u.issuer is null then '' else u.email end::text as email, coalesce(u.issuer, '')::text as issuer, s.authenticated_at,
    (case when u.issuer is null then u.name else lower(u.email) end = any(n.administrators))::boolean as administrator,
    sqlc.embed(quotas), sqlc.embed(user_placements)
from sessions s
join users u on u.tenant_id = s.tenant_id and u.id = s.user_id and u.active
    and u.password_hash is not distinct from s.password_hash
join tenants n on n.id = s.tenant_id and n.state = 'active' and not n.suspended
join quotas on quotas.tenant_id = s.tenant_id
cross join lateral (select * from user_placements x where x.tenant_id = s.tenant_id and x.user_id = s.user_id limit 1) user_placements
where s.hash = @hash and not s.one_time and s.expires_at > now();

-- name: InsertSignInLink :execrows
insert into sessions (hash, tenant_id, user_id, password_hash, expires_at, one_time)
select @hash, u.tenant_id, u.id, u.password_hash, now() + @lifetime::interval, true
from users u
join tenants n on n.id = u.tenant_id and n.state = 'active' and not n.suspended
where u.tenant_id = @tenant_id and u.id = @user_id and u.active and u.kind = 'user';

-- name: UseSignInLink :many
delete from sessions where hash = @hash and one_time and expires_at > now() returning tenant_id, user_id, password_hash;

-- name: InsertLinkedSession :execrows
-- No rows if the user's password has been replaced or the access has ended.
insert into sessions (hash, tenant_id, user_id, password_hash, expires_at, authenticated_at)
select @hash, u.tenant_id, u.id, u.password_hash, now() + @lifetime::interval, now()
from users u
join tenants n on n.id = u.tenant_id and n.state = 'active' and not n.suspended
where u.tenant_id = @tenant_id and u.id = @user_id and u.active and u.password_hash is not distinct from @password_hash;

-- name: DeleteSession :many
delete from sessions where hash = @hash returning tenant_id, user_id;

-- name: DeleteUserSessions :exec
delete from sessions where tenant_id = @tenant_id and user_id = @user_id;

-- name: DeleteTenantSessions :exec
delete from sessions where tenant_id = @tenant_id;

-- name: ExpireSessions :exec
delete from sessions where hash in (
    select o.hash from sessions o where o.expires_at <= now() limit 100 for update skip locked);
