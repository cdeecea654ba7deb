-- name: PurgeLedgers :execrows
-- This and the following queries delete rows of users before the users, because a cascade has no limit. The range of users is one user, or all of the tenant.
-- Batches are in the order of an index, see PurgeConversations. The parts of a page of imports are deleted before the page.
delete from import_ledger l where l.tenant_id = @tenant_id and l.ctid = any(array(
    select part.ctid from (
        select i.user_id, i.id from imports i
        where i.tenant_id = @tenant_id and i.user_id between @first_user and @last_user
            and coalesce(i.finished_at, i.started_at) <= coalesce(sqlc.narg('up_to')::timestamptz, 'infinity')
        order by i.user_id, i.id limit @imports
    ) page
    cross join lateral (
        select x.ctid from import_ledger x where x.tenant_id = @tenant_id and x.user_id = page.user_id and x.import_id = page.id
        order by x.ordinal limit @batch
    ) part
    limit @batch));

-- name: PurgeChunks :execrows
-- Returns the number of changed imports. Their bytes count until the chunks are deleted, see DeleteChunks.
with deleted as (
    delete from import_chunks k where k.tenant_id = @tenant_id and k.ctid = any(array(
        select part.ctid from (
            select i.user_id, i.id from imports i
            where i.tenant_id = @tenant_id and i.user_id between @first_user and @last_user
                and coalesce(i.finished_at, i.started_at) <= coalesce(sqlc.narg('up_to')::timestamptz, 'infinity')
            order by i.user_id, i.id limit @imports
        ) page
        cross join lateral (
            select x.ctid from import_chunks x where x.tenant_id = @tenant_id and x.user_id = page.user_id and x.import_id = page.id
            order by x.n limit @batch
        ) part
        limit @batch))
    returning k.user_id, k.import_id, octet_length(k.data) as bytes
)
update imports i set chunk_bytes = greatest(0, i.chunk_bytes - d.bytes)
from (select user_id, import_id, sum(bytes) as bytes from deleted group by user_id, import_id) d
where i.tenant_id = @tenant_id and i.user_id = d.user_id and i.id = d.import_id;

-- name: PurgeImports :one
-- Returns the number of imports that were found. A job that counts indexed conversations can change one concurrently, which then remains.
with deleted as (
    delete from imports i where i.tenant_id = @tenant_id and i.ctid = any(array(
        select x.ctid from imports x
        where x.tenant_id = @tenant_id and x.user_id between @first_user and @last_user
            and coalesce(x.finished_at, x.started_at) <= coalesce(sqlc.narg('up_to')::timestamptz, 'infinity')
        order by x.user_id, x.id limit @imports))
)
select count(*) from (
    select x.id from imports x
    where x.tenant_id = @tenant_id and x.user_id between @first_user and @last_user
        and coalesce(x.finished_at, x.started_at) <= coalesce(sqlc.narg('up_to')::timestamptz, 'infinity')
    order by x.user_id, x.id limit @imports
) page;

-- name: PurgeRequests :execrows
delete from idempotency_keys k where k.tenant_id = @tenant_id and k.ctid = any(array(
    select x.ctid from idempotency_keys x
    where x.tenant_id = @tenant_id and x.user_id between @first_user and @last_user
        and x.created_at <= coalesce(sqlc.narg('up_to')::timestamptz, 'infinity')
    order by x.user_id, x.created_at limit @batch));
