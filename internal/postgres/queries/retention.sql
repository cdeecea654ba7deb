-- name: ListTenantIDs :many
-- Deleted tenants as well, as long as they have audit records or metered usage.
select id from tenants union select a.id from audit_tenants(true) as a (id) union select d.tenant_id from usage_days d order by id;

-- name: ExpireImports :execrows
-- Deletes some finished imports with their ledgers.
delete from imports i using (
    select o.user_id, o.id from imports o
    where o.tenant_id = @tenant_id and o.status in ('done', 'failed') and o.stored and o.finished_at < now() - @age::interval
    limit @batch::bigint for update skip locked
) old
where i.tenant_id = @tenant_id and i.user_id = old.user_id and i.id = old.id;

-- name: ExpireTokens :execrows
-- Deletes some tokens that expired or were revoked. The newest of each user stays: its
-- generation must not be used again.
delete from tokens t using (
    select o.user_id, o.generation from tokens o
    where o.tenant_id = @tenant_id and o.expires_at < now() - @age::interval and exists (
        select from tokens n where n.tenant_id = o.tenant_id and n.user_id = o.user_id and n.generation > o.generation)
    limit @batch::bigint for update skip locked
) old
where t.tenant_id = @tenant_id and t.user_id = old.user_id and t.generation = old.generation;

-- name: ExpireTenantRequests :execrows
-- Deletes some expired idempotency keys of all users, including former ones.
delete from idempotency_keys k using (
    select o.user_id, o.route, o.key from idempotency_keys o
    where o.tenant_id = @tenant_id and o.created_at < now() - @age::interval
    limit @batch::bigint for update skip locked
) old
where k.tenant_id = @tenant_id and k.user_id = old.user_id and k.route = old.route and k.key = old.key;
