-- name: ListRecords :many
select t.id, t.resource, t.cluster, t.namespace, coalesce(t.namespace_uid, '') as namespace_uid, t.name, t.state, t.deletion_policy, t.retired_at,
    u.memories, u.conversations, u.blocked, u.storage,
    ((select count(*) from users x where x.tenant_id = t.id and x.kind = 'user' and x.active) + u.application_users)::bigint as users,
    coalesce(p.cell, '') as cell, coalesce(p.collection, '') as collection, coalesce(p.partition, '') as partition, coalesce(p.shared, false) as shared,
    coalesce(m.cell, '') as target_cell, coalesce(m.collection, '') as target_collection, coalesce(m.partition, '') as target_partition, coalesce(m.shared, false) as target_shared
from tenants t
join usage u on u.tenant_id = t.id
left join placements p on p.tenant_id = t.id
left join placement_migrations m on m.tenant_id = t.id
where (@cluster::text = '' or t.cluster = @cluster)
    and (@namespace::text = '' or t.namespace = @namespace)
    and (@name::text = '' or t.name = @name)
order by t.namespace, t.name, t.retired_at;

-- name: MarkOrphaned :execrows
update tenants set state = 'retained', retired_at = now(), updated_at = now() where id = @id and state = 'active';

-- name: ForgetPasswords :exec
update users set password_hash = null, password_replaced = false where tenant_id = @tenant_id and password_hash is not null;
