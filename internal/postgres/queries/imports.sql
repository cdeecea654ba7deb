-- name: StorageLeft :one
select (q.storage - u.storage)::bigint as left_over, q.storage as hard, u.storage as used
from usage u join quotas q on q.tenant_id = u.tenant_id where u.tenant_id = @tenant_id;

-- name: CountUnfinishedImports :one
select count(*) from imports where tenant_id = @tenant_id and user_id = @user_id and kind = 'file'
    and status in ('uploading', 'queued', 'running');

-- name: BeginUpload :exec
insert into imports (tenant_id, user_id, id, kind, platform, status, landed, leased_until)
values (@tenant_id, @user_id, @id, 'file', '', 'uploading', false, now() + make_interval(secs => @lease::int));

-- name: KeepUpload :execrows
-- Of an upload that still goes on.
update imports set leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: InsertChunk :exec
insert into import_chunks (tenant_id, user_id, import_id, n, data) values (@tenant_id, @user_id, @import_id, @n, @data);

-- name: FinishUpload :execrows
update imports set status = 'queued', asked = @asked, platform = @asked, size = @size, leased_until = null, version = 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: DropUpload :exec
delete from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: DropAbandonedUpload :execrows
delete from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading' and leased_until < now();

-- name: ReadChunk :one
select data from import_chunks where tenant_id = @tenant_id and user_id = @user_id and import_id = @import_id and n = @n;

-- name: DropChunks :execrows
delete from import_chunks k using (
    select c.n from import_chunks c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.import_id = @import_id limit @batch
) old
where k.tenant_id = @tenant_id and k.user_id = @user_id and k.import_id = @import_id and k.n = old.n;

-- name: ClaimImport :one
-- Nobody else reads it, and none of the user's others is being read.
update imports i set status = 'running', worker = @worker, leased_until = now() + make_interval(secs => @lease::int),
    attempts = i.attempts + 1, version = i.version + case when i.status = 'queued' then 1 else 0 end
where i.tenant_id = @tenant_id and i.user_id = @user_id and i.id = @id and i.status in ('queued', 'running')
    and (i.leased_until is null or i.leased_until < now())
    and not exists (
        select from imports o where o.tenant_id = @tenant_id and o.user_id = @user_id and o.id <> @id
            and o.status = 'running' and o.leased_until >= now())
returning i.asked, i.size, i.landed, i.failure, i.warnings, i.notes, i.attempts, i.started_at;

-- name: ImportStatus :one
select status from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: KeepImport :execrows
update imports set leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: ReleaseImport :exec
-- An attempt that failed for no fault of the import's is none.
update imports set leased_until = null, worker = null, attempts = greatest(0, attempts - case when @blamed::boolean then 0 else 1 end)
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: DescribeImport :execrows
update imports set platform = @platform, total = @total, warnings = @warnings, version = version + 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: LedgerOrdinals :many
select ordinal from import_ledger where tenant_id = @tenant_id and user_id = @user_id and import_id = @import_id;

-- name: KnownConversations :many
-- Which of the places conversations are stored already.
select k.n::int as n from (
    select generate_subscripts(@platforms::text[], 1) as n, unnest(@platforms::text[]) as platform, unnest(@external_ids::text[]) as external_id) k
join conversations c on c.tenant_id = @tenant_id and c.user_id = @user_id and c.platform = k.platform and c.external_id = k.external_id;

-- name: LockConversations :many
select c.* from conversations c join (
    select unnest(@platforms::text[]) as platform, unnest(@external_ids::text[]) as external_id) k
    on c.platform = k.platform and c.external_id = k.external_id
where c.tenant_id = @tenant_id and c.user_id = @user_id
order by c.id for update of c;

-- name: MessagesOf :many
select conversation_id::text as conversation, seq, external_id, sender, text, tokens, created_at from messages
where tenant_id = @tenant_id and user_id = @user_id and conversation_id = any(@ids::uuid[])
order by conversation_id, seq;

-- name: LandConversations :execrows
-- New ones. One that somebody else has just made is left alone.
insert into conversations (tenant_id, user_id, id, external_id, platform, platform_name, title, status,
    pinned, message_count, token_count, bytes, import_id, created_at, updated_at)
select @tenant_id, @user_id, c.id, c.external_id, c.platform, c.platform_name, c.title, c.status,
    c.pinned, c.message_count, c.token_count, c.bytes, @import_id, c.created_at, c.updated_at
from (select unnest(@ids::uuid[]) as id, unnest(@external_ids::text[]) as external_id, unnest(@platforms::text[]) as platform,
    unnest(@platform_names::text[]) as platform_name, unnest(@titles::text[]) as title, unnest(@statuses::text[]) as status, unnest(@pinned::boolean[]) as pinned,
    unnest(@message_counts::int[]) as message_count,
    unnest(@token_counts::bigint[]) as token_count, unnest(@bytes::bigint[]) as bytes,
    unnest(@created::timestamptz[]) as created_at, unnest(@updated::timestamptz[]) as updated_at) c
order by c.platform, c.external_id
on conflict (tenant_id, user_id, platform, external_id) do nothing;

-- name: LandMessages :exec
insert into messages (tenant_id, user_id, conversation_id, seq, external_id, sender, text, tokens, created_at)
select @tenant_id, @user_id, m.conversation_id, m.seq, m.external_id, m.sender, m.text, m.tokens, m.created_at
from (select unnest(@conversation_ids::uuid[]) as conversation_id, unnest(@seqs::int[]) as seq, unnest(@external_ids::text[]) as external_id,
    unnest(@senders::text[]) as sender, unnest(@texts::text[]) as text, unnest(@tokens::int[]) as tokens,
    unnest(@times::timestamptz[]) as created_at) m;

-- name: LandUnits :exec
-- Each text is taken apart once, though it is part of up to five units; what a
-- unit lacks is text 0.
with words as materialized (
    select t.n, to_tsvector('english', t.text) as tsv
    from (select generate_subscripts(@texts::text[], 1) as n, unnest(@texts::text[]) as text) t
    union all select 0, ''::tsvector
)
insert into units (tenant_id, user_id, kind, group_id, conversation_id, seq, span_start, span_end, active, tsv)
select @tenant_id, @user_id, 2, p.group_id, p.conversation_id, p.seq, p.span_start, p.span_end, false,
    a.tsv || b.tsv || c.tsv || d.tsv || e.tsv
from (select unnest(@conversation_ids::uuid[]) as conversation_id, unnest(@groups::bigint[]) as group_id, unnest(@seqs::int[]) as seq,
    unnest(@starts::int[]) as span_start, unnest(@ends::int[]) as span_end, unnest(@part1::int[]) as part1, unnest(@part2::int[]) as part2,
    unnest(@part3::int[]) as part3, unnest(@part4::int[]) as part4, unnest(@part5::int[]) as part5) p
join words a on a.n = p.part1 join words b on b.n = p.part2 join words c on c.n = p.part3
join words d on d.n = p.part4 join words e on e.n = p.part5;

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
-- Of errors the first hundred are kept.
update imports set imported = imported + @imported, updated = updated + @updated, skipped = skipped + @skipped,
    unchanged = unchanged + @unchanged, failed = failed + @failed, indexed = indexed + @indexed, notes = @notes,
    errors = (select coalesce(jsonb_agg(e.value order by e.n), '[]')
        from jsonb_array_elements(errors || @errors::jsonb) with ordinality as e (value, n) where e.n <= 100),
    attempts = 0, version = version + 1, leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: LandImport :execrows
-- All of it is stored: from here on its conversations ask for room.
update imports set landed = true, failure = @failure, warnings = @warnings, version = version + 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running';

-- name: SettleLedger :one
-- What is not active has nothing to embed.
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
-- Looks which of the newest conversations of an import have got their
-- embeddings: that is the order they are embedded in.
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
select sqlc.embed(i), (select count(*) from conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id
    and c.import_id = i.id and c.status = 'blocked' and i.landed) as blocked
from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.id = @id and i.status <> 'uploading';

-- name: ListImports :many
select sqlc.embed(i), (select count(*) from conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id
    and c.import_id = i.id and c.status = 'blocked' and i.landed) as blocked
from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.kind = 'file' and i.status <> 'uploading'
order by i.id desc limit @page offset @skip;

-- name: CountImports :one
select count(*) from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.kind = 'file' and i.status <> 'uploading';
