-- name: InsertImport :exec
insert into imports (tenant_id, user_id, id, platform, status, total, imported, updated, skipped, unchanged, failed, indexed, errors,
    version, finished_at)
values (@tenant_id, @user_id, @id, @platform, @status, 1, @imported, @updated, @skipped, @unchanged, @failed, @indexed, @errors,
    1, now());

-- name: ReadChunk :one
select data from import_chunks where tenant_id = @tenant_id and user_id = @user_id and import_id = @import_id and n = @n;

-- name: DeleteChunks :execrows
-- An older release stored chunks without counting them, hence greatest.
with deleted as (
    delete from import_chunks k using (
        select c.n from import_chunks c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.import_id = @import_id limit @batch
    ) old
    where k.tenant_id = @tenant_id and k.user_id = @user_id and k.import_id = @import_id and k.n = old.n
    returning octet_length(k.data) as bytes
)
update imports i set chunk_bytes = greatest(0, i.chunk_bytes - d.bytes)
from (select sum(bytes) as bytes from deleted) d
where i.tenant_id = @tenant_id and i.user_id = @user_id and i.id = @import_id and d.bytes is not null;

-- name: ClaimImport :one
-- Claims an import whose lease has expired, unless another import of the user is running. A worker that did not release it was killed.
update imports i set status = 'running', worker = @worker, leased_until = now() + make_interval(secs => @lease::int),
    attempts = i.attempts + 1, killed = i.killed + case when i.worker is null then 0 else 1 end,
    version = i.version + case when i.status = 'queued' then 1 else 0 end
where i.tenant_id = @tenant_id and i.user_id = @user_id and i.id = @id and i.status in ('queued', 'running')
    and (i.leased_until is null or i.leased_until < now())
    and not exists (
        select from imports o where o.tenant_id = @tenant_id and o.user_id = @user_id and o.id <> @id
            and o.status = 'running' and o.leased_until >= now())
returning i.requested_platform, i.skip_invalid, i.size, i.stored, i.failure, i.warnings, i.notes, i.attempts, i.killed, i.started_at;

-- name: ImportStatus :one
select status from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: RenewImport :execrows
update imports set leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: ImportsWait :one
select imports_wait();

-- name: ReleaseImport :exec
-- Only failed attempts count. If another worker has claimed the import, it counted this one, which is alive, as killed.
update imports set attempts = greatest(0, attempts - case when @failed::boolean then 0 else 1 end),
    killed = greatest(0, killed - case when worker = @worker then 0 else 1 end),
    leased_until = case when worker = @worker then null else leased_until end,
    worker = case when worker = @worker then null else worker end
where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'running';

-- name: SetImportContent :execrows
update imports set platform = @platform, total = @total, warnings = @warnings, version = version + 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: LedgerOrdinals :many
select ordinal from import_ledger where tenant_id = @tenant_id and user_id = @user_id and import_id = @import_id;

-- name: InsertLedger :exec
insert into import_ledger (tenant_id, user_id, import_id, ordinal, outcome, conversation_id, reason, indexed)
select @tenant_id, @user_id, @import_id, l.ordinal, l.outcome, nullif(l.conversation_id, '')::uuid, l.reason,
    l.outcome not in ('imported', 'updated')
from (select unnest(@ordinals::int[]) as ordinal, unnest(@outcomes::text[]) as outcome,
    unnest(@conversation_ids::text[]) as conversation_id, unnest(@reasons::text[]) as reason) l;

-- name: LockRunningImport :one
select notes from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running'
for update;

-- name: AddToImport :exec
-- Keeps the first hundred errors.
update imports set imported = imported + @imported, updated = updated + @updated, skipped = skipped + @skipped,
    unchanged = unchanged + @unchanged, failed = failed + @failed, indexed = indexed + @indexed, notes = @notes,
    errors = (select coalesce(jsonb_agg(e.value order by e.n), '[]')
        from jsonb_array_elements(errors || @errors::jsonb) with ordinality as e (value, n) where e.n <= 100),
    attempts = 0, killed = 0, version = version + 1, leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: SetImportStored :execrows
-- The whole file is stored: from now on a re-balance may activate its conversations.
update imports set stored = true, failure = @failure, warnings = @warnings, version = version + 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: SettleLedger :one
-- Conversations that are not active are not embedded.
with settled as (
    update import_ledger l set indexed = true
    where l.tenant_id = @tenant_id and l.user_id = @user_id and l.import_id = @import_id and not l.indexed
        and not exists (select from conversations c where c.tenant_id = l.tenant_id and c.user_id = l.user_id
            and c.id = l.conversation_id and c.status = 'active')
    returning l.ordinal)
select count(*) from settled;

-- name: EndImport :execrows
update imports set status = case when failure = '' then 'done' else 'failed' end, finished_at = now(), worker = null,
    leased_until = null, indexed = indexed + @settled, version = version + 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: CountIndexed :exec
-- Checks the newest conversations of an import for embeddings: the newest are
-- embedded first.
with open as (
    select l.ordinal, l.conversation_id from import_ledger l
    left join conversations c on c.tenant_id = @tenant_id and c.user_id = @user_id and c.id = l.conversation_id
    where l.tenant_id = @tenant_id and l.user_id = @user_id and l.import_id = @import_id and not l.indexed
    order by c.updated_at desc nulls first limit 1000
    for update of l skip locked
), marked as (
    update import_ledger l set indexed = true from open o
    where l.tenant_id = @tenant_id and l.user_id = @user_id and l.import_id = @import_id and l.ordinal = o.ordinal
        and not exists (select from units u where u.tenant_id = @tenant_id and u.user_id = @user_id
            and u.conversation_id = o.conversation_id and u.active and u.indexed_at is null)
    returning l.ordinal
)
update imports i set indexed = i.indexed + m.n, version = i.version + 1 from (select count(*) as n from marked) m
where i.tenant_id = @tenant_id and i.user_id = @user_id and i.id = @import_id and m.n > 0;

-- name: GetImport :one
select sqlc.embed(i), (select count(*) from live_conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id
    and c.import_id = i.id and c.status = 'blocked' and i.stored) as blocked
from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.id = @id and i.status <> 'uploading';

-- name: ListImports :many
select sqlc.embed(i), (select count(*) from live_conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id
    and c.import_id = i.id and c.status = 'blocked' and i.stored) as blocked
from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.kind = 'file' and i.status <> 'uploading'
order by i.id desc limit @page offset @skip;

-- name: CountImports :one
select count(*) from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.kind = 'file' and i.status <> 'uploading';
