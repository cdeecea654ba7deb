-- name: DeleteDomains :execrows
-- Deletes the domains that the tenant no longer claims.
delete from oidc_domains where tenant_id = @tenant_id and not (issuer = @issuer and domain = any(coalesce(@domains::text[], '{}')));

-- name: ClaimDomains :execrows
insert into oidc_domains (issuer, domain, tenant_id)
select @issuer, d, @tenant_id from unnest(@domains::text[]) d
where not exists (select from oidc_domains o where o.issuer = @issuer and o.domain = d)
order by d
on conflict do nothing;

-- name: ListTakenDomains :many
select domain from oidc_domains where issuer = @issuer and domain = any(@domains::text[]) and tenant_id <> @tenant_id order by domain;

-- name: LockDomainOwner :one
-- Locks the tenant's usage, as every writer does first, and the domain: an Apply
-- that removes the domain waits and then sees the user.
select n.id, n.suspended, q.users from oidc_domains o
join tenants n on n.id = o.tenant_id and n.state = 'active'
join quotas q on q.tenant_id = n.id
join usage s on s.tenant_id = n.id
where o.issuer = @issuer and o.domain = @domain
for update of s for share of o;

-- name: LockExternalUser :one
select id, email, active, purging from users where tenant_id = @tenant_id and issuer = @issuer::text and subject = @subject::text for update;

-- name: CountUsers :one
select ((select count(*) from users u where u.tenant_id = @tenant_id and u.kind = 'user' and u.active)
    + coalesce((select s.application_users from usage s where s.tenant_id = @tenant_id), 0))::bigint;

-- name: InsertExternalUser :one
insert into users (tenant_id, name, email, issuer, subject)
values (@tenant_id, @name, @email, @issuer::text, @subject::text) returning id;

-- name: CountExternalUsers :one
select count(*) from users where tenant_id = @tenant_id and active and issuer is not null;

-- name: InsertExternalSession :exec
insert into sessions (hash, tenant_id, user_id, password_hash, expires_at, authenticated_at)
select @hash, u.tenant_id, u.id, u.password_hash, now() + @lifetime::interval, sqlc.narg('authenticated_at')
from users u where u.tenant_id = @tenant_id and u.id = @user_id;

-- name: ListDomains :many
select issuer, domain from oidc_domains where tenant_id = @tenant_id order by issuer, domain;
