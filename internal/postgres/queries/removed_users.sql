-- name: DeleteRemoved :execrows
-- Deletes the removals of the Tenant resource, except those of the given addresses.
delete from removed_users where tenant_id = @tenant_id and not administrator and not (email = any(coalesce(@emails::text[], '{}')));

-- name: InsertRemoved :execrows
insert into removed_users (tenant_id, email, administrator)
select @tenant_id, e, @administrator from unnest(coalesce(@emails::text[], '{}')) e
on conflict do nothing;

-- name: DeleteRemovedUser :execrows
-- Ends the removal by an administrator.
delete from removed_users where tenant_id = @tenant_id and email = @email and administrator;

-- name: ListRemoved :many
select email, administrator, removed_at from removed_users where tenant_id = @tenant_id order by email, administrator;

-- name: IsRemoved :one
select exists (select from removed_users where tenant_id = @tenant_id and email = any(@emails::text[]));

-- name: ListExternalUsers :many
select u.email, u.name, u.issuer::text as issuer, u.active, u.purging, u.created_at,
    (select count(*) from sessions s where s.tenant_id = u.tenant_id and s.user_id = u.id and not s.one_time and s.expires_at > now()) as sessions,
    ((select count(*) from tokens t where t.tenant_id = u.tenant_id and t.user_id = u.id
        and (t.expires_at is null or t.expires_at > now()))
    + (select count(*) from user_tokens t where t.tenant_id = u.tenant_id and t.user_id = u.id
        and (t.expires_at is null or t.expires_at > now())))::bigint as tokens
from users u where u.tenant_id = @tenant_id and u.issuer is not null order by u.email, u.id;

-- name: TenantPolicy :one
select deletion_policy from tenants where id = @id and state = 'active' for update;
