-- name: LockTenantByResource :one
select id, resource, cluster, namespace, name, display_name, state, suspended, deletion_policy, isolation, token_overlap
from tenants where resource = @resource for no key update;

-- name: LockTenantByName :one
select id, resource, cluster, namespace, name, display_name, state, suspended, deletion_policy, isolation, token_overlap
from tenants where cluster = @cluster and namespace = @namespace and name = @name for no key update;

-- name: LockTenantByClaim :one
-- A tenant of another cluster with the same namespace and name.
select id, resource, cluster, namespace, name, display_name, state, suspended, deletion_policy, isolation, token_overlap
from tenants where (resource = @claim::uuid or id = @claim) and cluster <> @cluster and namespace = @namespace and name = @name
for update;

-- name: AdoptTenant :exec
update tenants set resource = @resource, cluster = @cluster, state = 'active', retired_at = null, updated_at = now() where id = @id;
