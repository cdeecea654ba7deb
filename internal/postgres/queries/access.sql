-- name: LockActiveUser :one
select u.id from users u join tenants n on n.id = u.tenant_id and n.state = 'active' and not n.suspended
where u.tenant_id = @tenant_id and u.id = @user_id and u.active for no key update of u;

-- name: NotifyOperator :exec
-- Requests an early reconciliation of the tenant's current resource.
select pg_notify('mnemo_operator', resource::text) from tenants where id = @tenant_id;
