-- name: LockApplications :many
-- The applications of a tenant, also those that it no longer has.
select u.id, u.name, u.active, coalesce(a.scopes, '{}')::text[] as scopes, coalesce(a.allowed_origins, '{}')::text[] as allowed_origins,
    coalesce(a.requests_per_minute, 0)::bigint as requests_per_minute
from users u left join applications a on a.tenant_id = u.tenant_id and a.user_id = u.id
where u.tenant_id = @tenant_id and u.kind = 'application' and not u.purging order by u.name for no key update of u;

-- name: ListApplications :many
select u.name, a.scopes, a.allowed_origins, a.requests_per_minute
from users u join applications a on a.tenant_id = u.tenant_id and a.user_id = u.id
where u.tenant_id = @tenant_id and u.kind = 'application' and u.active order by u.name;

-- name: InsertApplication :one
insert into users (tenant_id, name, kind) values (@tenant_id, @name, 'application') returning id;

-- name: SetApplication :exec
insert into applications (tenant_id, user_id, scopes, allowed_origins, requests_per_minute)
values (@tenant_id, @user_id, @scopes, @allowed_origins, @requests_per_minute)
on conflict (tenant_id, user_id) do update set scopes = excluded.scopes, allowed_origins = excluded.allowed_origins,
    requests_per_minute = excluded.requests_per_minute;

-- name: DeleteApplication :exec
delete from applications where tenant_id = @tenant_id and user_id = @user_id;

-- name: FindApplicationUser :one
-- The user and the location and generation that serve it, if it exists.
-- The placement has a limit, as in Identify.
select sqlc.embed(user_placements)
from users u
cross join lateral (select * from user_placements x where x.tenant_id = u.tenant_id and x.user_id = u.id limit 1) user_placements
where u.tenant_id = @tenant_id and u.name = @name and u.kind = 'application_user' and u.active;

-- name: LockApplicationUser :one
select id from users where tenant_id = @tenant_id and name = @name and kind = 'application_user' and active for no key update;

-- name: LockUserQuota :one
-- Locks the usage and returns the users of the tenant and their quota.
select q.users, ((select count(*) from users x where x.tenant_id = s.tenant_id and x.kind = 'user' and x.active) + s.application_users)::bigint as used
from usage s join tenants t on t.id = s.tenant_id and t.state = 'active' join quotas q on q.tenant_id = s.tenant_id
where s.tenant_id = @tenant_id for update of s;

-- name: InsertApplicationUser :one
insert into users (tenant_id, name, kind) values (@tenant_id, @name, 'application_user') on conflict do nothing returning id;

-- name: ListApplicationUsers :many
select name, memories, conversations, created_at from users
where tenant_id = @tenant_id and kind = 'application_user' and active and name > @after order by name limit @most::bigint;

-- name: GetApplicationUser :one
select name, memories, conversations, created_at from users
where tenant_id = @tenant_id and kind = 'application_user' and active and name = @name;

-- name: AllowedOrigins :many
-- The origins of all tenants: a preflight request has no key.
select distinct unnest(a.allowed_origins)::text as origin from applications a
join tenants t on t.id = a.tenant_id and t.state = 'active' order by origin;
