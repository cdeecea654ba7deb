-- name: PrepareMemory :one
-- The bucket of a new memory, 0 if it does not exist or the user is being erased, the oldest memory with exactly this text and these attributes in it, and ids
-- for the units. Without one, the oldest memory that repeats: with the first of these texts that exists, created on its day unless that is empty, in any bucket
-- (0) and, if all attributes are empty, with any attributes except user_id in the metadata, which names another subject.
select coalesce((select b.id from buckets b join users x on x.tenant_id = b.tenant_id and x.id = b.user_id and not x.purging
        where b.tenant_id = @tenant_id and b.user_id = @user_id
            and case when @bucket_id::bigint = 0 then b.is_default else b.id = @bucket_id end), 0)::bigint as bucket,
    coalesce((select m.id from memories_with_text(@tenant_id, @user_id, @text::text) m
        join buckets b on b.tenant_id = @tenant_id and b.user_id = @user_id and b.id = m.bucket_id
        where case when @bucket_id::bigint = 0 then b.is_default else b.id = @bucket_id end
            and m.agent_id = @agent_id::text and m.run_id = @run_id::text and m.tags = @tags::text[] and m.metadata = @metadata::jsonb
        order by m.seq limit 1)::text,
        (select m.id from (select generate_subscripts(@repeats::text[], 1) as n, unnest(@repeats::text[]) as text, unnest(@days::text[]) as day) w
        cross join lateral memories_with_text(@tenant_id, @user_id, w.text) m
        where (w.day = '' or w.day = (select to_char(o.created_at at time zone 'UTC', 'YYYY-MM-DD') from live_memories o
                where o.tenant_id = @tenant_id and o.user_id = @user_id and o.id = m.id))
            and @bucket_id in (0, m.bucket_id)
            and (@agent_id = '' and @run_id = '' and @tags = '{}' and @metadata = '{}' and not m.metadata ? 'user_id'
                or m.agent_id = @agent_id and m.run_id = @run_id and m.tags = @tags and m.metadata = @metadata)
        order by w.n, m.seq limit 1)::text, '')::text as duplicate,
    array(select nextval('unit_ids') from generate_series(1, @units::int))::bigint[] as units;

-- name: CreateMemoryParts :exec
-- Inserts the first version and the units of a memory that the transaction inserts with CreateMemory.
with version as (
    insert into memory_versions (tenant_id, user_id, memory_id, version, text) values (@tenant_id, @user_id, @memory_id::uuid, 1, @text)
)
insert into units (tenant_id, user_id, id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id)
select @tenant_id, @user_id, p.id, 1, @bucket_id::bigint, @memory_id::uuid, p.span_start, p.span_end, to_tsvector('english', p.lexical), p.embedding,
    p.generation_id
from (select unnest(@unit_ids::bigint[]) as id, unnest(@starts::int[]) as span_start, unnest(@ends::int[]) as span_end,
    unnest(@lexicals::text[]) as lexical, unnest(@embeddings::bytea[]) as embedding, unnest(@generations::smallint[]) as generation_id) p;

-- name: CreateMemory :exec
-- Inserts and counts a memory. The transaction holds the lock on the usage row. Fails like require_quota, or with SQLSTATE MN001 if
-- the bucket contains the text or does not exist, or the user is being erased.
with allowed as (
    select from users x
    join buckets b on b.tenant_id = x.tenant_id and b.user_id = x.id and b.id = @bucket_id
    where x.tenant_id = @tenant_id and x.id = @user_id and not x.purging
        and not exists (select from memories_with_text(@tenant_id, @user_id, @text::text) m
            where m.bucket_id = @bucket_id
                and m.agent_id = @agent_id::text and m.run_id = @run_id::text and m.tags = @tags::text[] and m.metadata = @metadata::jsonb)
), within as (
    select require_quota(@tenant_id, @user_id, 1, @storage::bigint) from allowed
), charged as (
    update usage u set memories = u.memories + 1, storage = u.storage + @storage::bigint, embedded_tokens = u.embedded_tokens + @embedded::bigint
    from within where u.tenant_id = @tenant_id
), numbered as (
    update users u set memories = u.memories + 1, memory_seq = u.memory_seq + 1
    from within where u.tenant_id = @tenant_id and u.id = @user_id
    returning u.memory_seq
), counted as (
    update buckets b set memories = b.memories + 1
    from within where b.tenant_id = @tenant_id and b.user_id = @user_id and b.id = @bucket_id
), made as (
    insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source, agent_id, run_id, tags, metadata, attribute_bytes)
    select @tenant_id, @user_id, @id, numbered.memory_seq, @bucket_id, @text::text, @tokens::int, @source::text,
        @agent_id::text, @run_id::text, @tags::text[], @metadata::jsonb, @attribute_bytes::int
    from numbered
    returning id
)
select require_created(exists (select from made));

-- name: Supersede :exec
-- Marks memories as superseded by a newer one, unless another existing memory already supersedes them.
update memories m set superseded_by = @newer::uuid, superseded_at = now()
where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@older::uuid[]) and m.id <> @newer::uuid
    and exists (select from memories n where n.tenant_id = @tenant_id and n.user_id = @user_id and n.id = @newer::uuid)
    and not exists (select from memories n where n.tenant_id = m.tenant_id and n.user_id = m.user_id and n.id = m.superseded_by);

-- name: Unlink :exec
-- Removes the links from and to a memory, whose text changes.
update memories set superseded_by = null, superseded_at = null
where tenant_id = @tenant_id and user_id = @user_id and (id = @id::uuid or superseded_by = @id::uuid);

-- name: NewerMemories :many
-- The existing memories that supersede others, if that was known before a time.
select m.id, n.id as newer from live_memories m
join live_memories n on n.tenant_id = m.tenant_id and n.user_id = m.user_id and n.id = m.superseded_by
where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids::uuid[])
    and (@bucket_id::bigint = 0 or n.bucket_id = @bucket_id)
    and (sqlc.narg('as_of')::timestamptz is null or m.superseded_at < sqlc.narg('as_of'));

-- name: MemoryBytes :one
-- What memories, also merged ones, count toward the storage quota: all versions and the attributes.
select ((select coalesce(sum(octet_length(v.text)), 0) from memory_versions v
        where v.tenant_id = @tenant_id and v.user_id = @user_id and v.memory_id = any(@ids::uuid[]))
    + (select coalesce(sum(m.attribute_bytes), 0) from memories m
        where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids::uuid[]))
    + (select coalesce(sum(g.attribute_bytes), 0) from merged_memories g
        where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = any(@ids::uuid[])))::bigint;

-- name: BeginDeletion :exec
-- Tells the trigger delete_parts that the next statement is DeleteMemories, which deletes units and versions itself.
select set_config('mnemo.parts', 'deleted', true);

-- name: DeleteMemories :one
-- Deletes memories with their units and versions, after BeginDeletion. The index needs the ids of the units, and the storage quota the bytes. Merged
-- memories among the ids keep their versions. The trigger delete_parts deletes what was merged into the memories, which the audit log needs.
with unit as (
    delete from units u where u.tenant_id = @tenant_id and u.user_id = @user_id and u.memory_id = any(@ids::uuid[])
    returning u.id
), memory as (
    delete from memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids::uuid[])
    returning m.id, m.bucket_id, m.attribute_bytes
), version as (
    delete from memory_versions v where v.tenant_id = @tenant_id and v.user_id = @user_id and v.memory_id = any(array(select memory.id from memory))
    returning octet_length(v.text) as bytes
), merged as (
    select merged_tree(@tenant_id, @user_id, array(select memory.id from memory)) as id
)
select array(select id from unit)::bigint[] as units, array(select merged.id from merged)::uuid[] as merged, coalesce(array_agg(memory.id), '{}')::uuid[] as ids,
    coalesce(array_agg(memory.bucket_id), '{}')::bigint[] as buckets,
    (coalesce(sum(memory.attribute_bytes), 0) + (select coalesce(sum(bytes), 0) from version))::bigint as bytes
from memory;

-- name: LockMemory :one
select bucket_id, version, (text = @text::text)::boolean as same_text, agent_id, run_id, tags, metadata, attribute_bytes from memories
where tenant_id = @tenant_id and user_id = @user_id and id = @id
for update;

-- name: HistorySize :one
select (coalesce(sum(octet_length(text)), 0) + count(*) * @version_size::bigint)::bigint as bytes from memory_versions
where tenant_id = @tenant_id and user_id = @user_id and memory_id = @id;

-- name: LockMemories :many
select id, bucket_id from memories where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[])
order by id for update;

-- name: LockMemoriesOfBucket :many
select id from memories where tenant_id = @tenant_id and user_id = @user_id and bucket_id = @bucket_id
order by seq limit @batch for update;

-- name: EditMemory :one
-- Replaces the text of a memory with a new version and new units. Returns the ids of
-- the old and the new units.
with edited as (
    update memories m set text = @text::text, tokens = @tokens, version = m.version + 1, bucket_id = @bucket_id, updated_at = now()
    where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = @id
    returning m.id, m.bucket_id, m.version
), version as (
    insert into memory_versions (tenant_id, user_id, memory_id, version, text)
    select @tenant_id, @user_id, edited.id, edited.version, @text::text from edited
), old as (
    delete from units where tenant_id = @tenant_id and user_id = @user_id and memory_id = @id
    returning id
), unit as (
    insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id)
    select @tenant_id, @user_id, 1, edited.bucket_id, edited.id, p.span_start, p.span_end, to_tsvector('english', p.lexical), p.embedding, p.generation_id
    from edited, (select unnest(@starts::int[]) as span_start, unnest(@ends::int[]) as span_end,
        unnest(@lexicals::text[]) as lexical, unnest(@embeddings::bytea[]) as embedding,
        unnest(@generations::smallint[]) as generation_id) p
    returning id
)
select edited.version, array(select id from old union all select id from unit)::bigint[] as units from edited;

-- name: SetMemoryAttributes :exec
update memories set agent_id = @agent_id, run_id = @run_id, tags = @tags::text[], metadata = @metadata::jsonb,
    attribute_bytes = @attribute_bytes, updated_at = now()
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: MoveMemories :exec
update memories set bucket_id = @bucket_id, updated_at = now()
where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]);

-- name: MoveMemoryUnits :many
-- Replaces the units of the memories by copies in another bucket. Returns the ids of
-- both.
with old as (
    delete from units u where u.tenant_id = @tenant_id and u.user_id = @user_id and u.memory_id = any(@ids::uuid[])
    returning u.id, u.memory_id, u.seq, u.span_start, u.span_end, u.tsv, u.embedding, u.generation_id, u.next_embedding, u.next_generation_id
), made as (
    insert into units (tenant_id, user_id, kind, group_id, memory_id, seq, span_start, span_end, tsv, embedding, generation_id,
        next_embedding, next_generation_id)
    select @tenant_id, @user_id, 1, @bucket_id, old.memory_id, old.seq, old.span_start, old.span_end, old.tsv, old.embedding, old.generation_id,
        old.next_embedding, old.next_generation_id
    from old order by old.id
    returning units.id
)
select old.id from old union all select made.id from made;

-- name: MemoryVersions :many
select version, text, created_at from memory_versions
where tenant_id = @tenant_id and user_id = @user_id and memory_id = @memory_id
order by version desc offset @skip::int limit @page::int;

-- name: HasMemory :one
select exists (select from live_memories where tenant_id = @tenant_id and user_id = @user_id and id = @id);

-- name: MemoryLabels :many
-- The most frequent sources, without the empty one, and tags.
select l.is_tag::boolean as is_tag, l.name::text as name from (
    (select false as is_tag, s.source as name, count(*) as n from live_memories s where s.tenant_id = @tenant_id and s.user_id = @user_id and s.source <> ''
        group by s.source order by n desc, s.source limit 50)
    union all
    (select true, t.tag, count(*) as n from live_memories m cross join unnest(m.tags) t (tag) where m.tenant_id = @tenant_id and m.user_id = @user_id
        group by t.tag order by n desc, t.tag limit 50)) l
order by l.is_tag, lower(l.name), l.name;

-- name: MemoryGroups :many
-- What memories name in agent_id, run_id and the members user_id and app_id of their metadata.
select g.kind::text as kind, g.name::text as name, count(*) as memories, min(m.created_at)::timestamptz as created_at, max(m.updated_at)::timestamptz as updated_at
from live_memories m cross join lateral (values
    ('user', case jsonb_typeof(m.metadata -> 'user_id') when 'string' then m.metadata ->> 'user_id' end),
    ('app', case jsonb_typeof(m.metadata -> 'app_id') when 'string' then m.metadata ->> 'app_id' end),
    ('agent', m.agent_id), ('run', m.run_id)) g (kind, name)
where m.tenant_id = @tenant_id and m.user_id = @user_id and g.name <> ''
group by g.kind, g.name order by g.kind, g.name offset @skip::int limit @page::int;

-- name: CountMemoryGroups :one
select count(distinct (g.kind, g.name)) from live_memories m cross join lateral (values
    ('user', case jsonb_typeof(m.metadata -> 'user_id') when 'string' then m.metadata ->> 'user_id' end),
    ('app', case jsonb_typeof(m.metadata -> 'app_id') when 'string' then m.metadata ->> 'app_id' end),
    ('agent', m.agent_id), ('run', m.run_id)) g (kind, name)
where m.tenant_id = @tenant_id and m.user_id = @user_id and g.name <> '';

-- name: MemoryOwners :many
-- The users of applications who own these memories. Several may own one id, because a restore keeps the ids of an export.
-- Each owner is looked up alone: a join may read all users of the tenant.
select m.id, min(u.name)::text as name, (count(*) > 1)::boolean as ambiguous from live_memories m
cross join lateral (select x.name from users x where x.tenant_id = @tenant_id and x.id = m.user_id and x.kind = 'application_user' and x.active limit 1) u
where m.tenant_id = @tenant_id and m.id = any(@ids::uuid[])
group by m.id;
