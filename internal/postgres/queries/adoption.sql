-- name: LockTenantByResource :one
select id, resource, state, namespace_uid from tenants where resource = @resource for no key update;

-- name: LockTenantByName :one
select t.id, t.resource, t.state, coalesce(t.namespace_uid, '') as namespace_uid,
    (u.memories + u.conversations + u.blocked + u.storage = 0)::boolean as empty
from tenants t join usage u on u.tenant_id = t.id
where t.cluster = @cluster and t.namespace = @namespace and t.name = @name for no key update of t;

-- name: ActivateTenant :exec
update tenants set resource = @resource, state = 'active', retired_at = null, updated_at = now() where id = @id;

-- name: SetNamespaceUID :exec
update tenants set namespace_uid = @namespace_uid where id = @id;

-- name: ReassignTenant :execrows
update tenants set namespace_uid = @namespace_uid, cluster = case when @cluster::text = '' then cluster else @cluster end, updated_at = now()
where id = @id and state = 'retained';
