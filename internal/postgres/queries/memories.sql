-- name: CreateMemory :many
-- Stores a memory with its first version and its units, and returns the units'
-- ids; no row when there is no such bucket, or none is the default yet.
with target as (
    update buckets b set memories = b.memories + 1
    where b.tenant_id = @tenant_id and b.user_id = @user_id
        and case when @bucket_id::bigint = 0 then b.is_default else b.id = @bucket_id end
    returning b.id
), numbered as (
    update users u set memory_seq = u.memory_seq + 1 from target
    where u.tenant_id = @tenant_id and u.id = @user_id
    returning u.memory_seq
), made as (
    insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source)
    select @tenant_id, @user_id, @id, numbered.memory_seq, target.id, @text::text, @tokens::int, @source::text
    from target, numbered
    returning id, bucket_id, created_at
), version as (
    insert into memory_versions (tenant_id, user_id, memory_id, version, text)
    select @tenant_id, @user_id, made.id, 1, @text::text from made
), unit as (
    insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding)
    select @tenant_id, @user_id, 1, made.bucket_id, made.id, p.span_start, p.span_end, to_tsvector('english', p.lexical), p.embedding
    from made, (select unnest(@starts::int[]) as span_start, unnest(@ends::int[]) as span_end,
        unnest(@lexicals::text[]) as lexical, unnest(@embeddings::bytea[]) as embedding) p
    returning id
)
select coalesce((select array_agg(unit.id order by unit.id) from unit), '{}')::bigint[] as units from made;

-- name: MemoriesByID :many
select m.id, m.seq, m.bucket_id, b.name as bucket_name, m.text, m.tokens, m.source, m.version, m.created_at, m.updated_at
from memories m join buckets b on b.tenant_id = m.tenant_id and b.user_id = m.user_id and b.id = m.bucket_id
where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids::uuid[]);

-- name: VersionBytes :one
select coalesce(sum(octet_length(text)), 0)::bigint from memory_versions
where tenant_id = @tenant_id and user_id = @user_id and memory_id = any(@ids::uuid[]);

-- name: DeleteMemoryUnits :many
-- By name, not by cascade: their ids are for the index.
delete from units where tenant_id = @tenant_id and user_id = @user_id and memory_id = any(@ids::uuid[])
returning id;

-- name: DeleteMemoryVersions :exec
delete from memory_versions where tenant_id = @tenant_id and user_id = @user_id and memory_id = any(@ids::uuid[]);

-- name: DeleteMemories :many
delete from memories where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[])
returning id, bucket_id;
