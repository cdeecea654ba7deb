-- name: ListMembers :many
-- The users of a tenant, except those of applications.
select u.name, u.email, (u.issuer is not null)::boolean as external, u.memories, u.conversations, u.created_at,
    (case when u.issuer is null then u.name else lower(u.email) end = any(n.administrators))::boolean as administrator
from users u join tenants n on n.id = u.tenant_id
where u.tenant_id = @tenant_id and u.kind = 'user' and u.active and u.name > @after
order by u.name limit @most::bigint;
