-- name: LockActiveUser :one
select u.id from users u join tenants n on n.id = u.tenant_id and n.state = 'active' and not n.suspended
where u.tenant_id = @tenant_id and u.id = @user_id and u.active for no key update of u;

-- name: NotifyOperator :exec
-- Requests an early reconciliation of the tenant's current resource.
select pg_notify('mnemo_operator', resource::text) from tenants where id = @tenant_id;

-- name: ReplacePassword :execrows
-- The session stays valid, and everything else under the old password ends. No rows if the
-- session has ended or the user has no password.
with s as (
    update sessions o set password_hash = @password_hash::bytea from users u
    where o.hash = @session and not o.one_time and o.expires_at > now() and o.tenant_id = @tenant_id and o.user_id = @user_id
        and u.tenant_id = o.tenant_id and u.id = o.user_id and u.password_hash = o.password_hash
    returning o.tenant_id, o.user_id
)
update users u set password_hash = @password_hash::bytea, password_replaced = true
from s where u.tenant_id = s.tenant_id and u.id = s.user_id;
