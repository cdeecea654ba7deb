-- name: LockUsers :many
select id, name, email, active, issuer from users where tenant_id = @tenant_id and kind = 'user' and not purging order by name for no key update;

-- name: LockErasableUser :many
-- The user unless its data is being purged, also one of an application.
select id, name, email, active, issuer from users
where tenant_id = @tenant_id and id = @id and kind <> 'application' and not purging for no key update;

-- name: ListUsers :many
select u.id, u.name, u.email, u.kind = 'application' as application, u.password_replaced,
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
where u.tenant_id = @tenant_id and u.kind <> 'application_user' and u.active and u.issuer is null order by u.name;

-- name: InsertUser :one
insert into users (tenant_id, name, email) values (@tenant_id, @name, @email) returning id;

-- name: SetUser :exec
update users set email = @email, active = @active where tenant_id = @tenant_id and id = @id;

-- name: LockUserByName :one
select id from users where tenant_id = @tenant_id and name = @name and active for no key update;

-- name: HasUser :one
-- Whether the user exists and is not being erased.
select exists (select from users where tenant_id = @tenant_id and id = @id and not purging);
