-- name: NewestToken :one
select generation, hash, issuer, created_at, last_used_at, (expires_at is null or expires_at > now())::boolean as valid
from tokens where tenant_id = @tenant_id and user_id = @user_id order by generation desc limit 1;

-- name: LockActiveUser :one
select u.id from users u join tenants n on n.id = u.tenant_id and n.state = 'active' and not n.suspended
where u.tenant_id = @tenant_id and u.id = @user_id and u.active for no key update of u;

-- name: NotifyOperator :exec
-- Names a tenant whose Tenant is to be looked at before its time.
select pg_notify('mnemo_operator', @tenant_id::text);

-- name: ShortenOverlaps :many
-- After the tenant's overlap may have become shorter: ends the old tokens that
-- would live longer than that beside the next one.
update tokens t set expires_at = e.at
from (
    select x.tenant_id, x.user_id, x.generation, greatest(now(), (
        select min(n.created_at) from tokens n
        where n.tenant_id = x.tenant_id and n.user_id = x.user_id and n.generation > x.generation
    ) + @overlap::interval) as at
    from tokens x where x.tenant_id = @tenant_id and x.expires_at > now()
) e
where t.tenant_id = e.tenant_id and t.user_id = e.user_id and t.generation = e.generation and t.expires_at > e.at
returning t.hash;
