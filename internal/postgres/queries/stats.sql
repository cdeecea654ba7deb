-- name: TenantStats :many
-- The tenants with the highest relative usage, highest first.
select t.id, t.namespace, t.name, u.memories, u.conversations, u.blocked, u.storage,
    (coalesce(n.users, 0) + u.application_users)::bigint as users,
    q.memories as memories_hard, q.conversations as conversations_hard, q.storage as storage_hard, q.users as users_hard
from tenants t join usage u on u.tenant_id = t.id join quotas q on q.tenant_id = t.id
    left join (select tenant_id, count(*) as users from users where active and kind = 'user' group by tenant_id) n on n.tenant_id = t.id
where t.state = 'active'
order by greatest(u.memories / greatest(q.memories, 1)::float8, u.conversations / greatest(q.conversations, 1)::float8,
    u.storage / greatest(q.storage, 1)::float8, (coalesce(n.users, 0) + u.application_users) / greatest(q.users, 1)::float8) desc, t.namespace, t.name
limit @most::bigint;

-- name: BlockedConversations :one
select coalesce(sum(blocked), 0)::bigint from usage;

-- name: AuditBacklog :one
select b.records::bigint as records, b.age::float8 as age from audit_backlog() b;
