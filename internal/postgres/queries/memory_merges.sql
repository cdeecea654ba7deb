-- name: LockMerge :many
select id, bucket_id, metadata from memories where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[])
order by id for update;

-- name: MergedAmong :many
-- Those of the ids that are merged memories.
select id, merged_into from merged_memories where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]);

-- name: IsMemory :one
-- Also of a merged memory.
select (exists (select from live_memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = @id)
    or exists (select from merged_memories g where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = @id))::boolean as known;

-- name: CountMerged :one
select count(*) from merged_memories where tenant_id = @tenant_id and user_id = @user_id and merged_into = @id;

-- name: MergeDepth :one
-- The number of levels of merges into the ids, at most @most.
with recursive tree as (
    select r.id, 0 as level from unnest(@ids::uuid[]) r (id)
    union all
    select g.id, t.level + 1 from tree t cross join lateral (
        select m.id from merged_memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.merged_into = t.id offset 0) g
    where t.level < @most::int
)
select coalesce(max(level), 0)::int as depth from tree;

-- name: ListMerged :many
select id, text, created_at, merged_at from merged_memories
where tenant_id = @tenant_id and user_id = @user_id and merged_into = @id order by merged_at desc, seq desc limit @page::int;

-- name: InsertMerged :exec
-- Copies memories before DeleteMergedSources deletes them. Memories that they superseded are superseded by the kept one, unless that is
-- outdated itself.
insert into merged_memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source, version, created_at, updated_at, superseded_by, superseded_at,
    agent_id, run_id, tags, metadata, attribute_bytes, merged_into, merged_at, relinked)
select m.tenant_id, m.user_id, m.id, m.seq, m.bucket_id, m.text, m.tokens, m.source, m.version, m.created_at, m.updated_at, m.superseded_by, m.superseded_at,
    m.agent_id, m.run_id, m.tags, m.metadata, m.attribute_bytes, @kept::uuid, statement_timestamp(),
    array(select o.id from memories o where o.tenant_id = m.tenant_id and o.user_id = m.user_id and o.superseded_by = m.id
        and o.id <> @kept and o.id <> all(@ids::uuid[]) and not exists (
            select from memories k join memories n on n.tenant_id = k.tenant_id and n.user_id = k.user_id and n.id = k.superseded_by
            where k.tenant_id = m.tenant_id and k.user_id = m.user_id and k.id = @kept and n.id <> all(@ids)))
from memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids);

-- name: RelinkMerged :exec
update memories o set superseded_by = g.merged_into from merged_memories g
where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = any(@ids::uuid[])
    and o.tenant_id = g.tenant_id and o.user_id = g.user_id and o.id = any(g.relinked);

-- name: DeleteMergedSources :one
-- Returns the units for the index.
with unit as (
    delete from units u where u.tenant_id = @tenant_id and u.user_id = @user_id and u.memory_id = any(@ids::uuid[])
    returning u.id
), memory as (
    delete from memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids)
    returning m.bucket_id
)
select array(select id from unit)::bigint[] as units, array(select bucket_id from memory)::bigint[] as buckets;

-- name: LockMerged :many
-- The memories merged into one: all, or those of the ids.
select id from merged_memories
where tenant_id = @tenant_id and user_id = @user_id and merged_into = @kept and (cardinality(@ids::uuid[]) = 0 or id = any(@ids))
order by seq for update;

-- name: LockMergedIntoOthers :many
-- Those merged into one of the ids, except the ids.
select id from merged_memories
where tenant_id = @tenant_id and user_id = @user_id and merged_into = any(@ids::uuid[]) and id <> all(@ids)
order by seq for update;

-- name: RestoreMerged :many
-- In their buckets, or the default one, or any other if a deletion of the account has purged that, too.
insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source, version, created_at, updated_at, superseded_by, superseded_at,
    agent_id, run_id, tags, metadata, attribute_bytes)
select g.tenant_id, g.user_id, g.id, g.seq,
    (select b.id from buckets b where b.tenant_id = g.tenant_id and b.user_id = g.user_id
        order by b.id = g.bucket_id desc, b.is_default desc limit 1),
    g.text, g.tokens, g.source, g.version, g.created_at, g.updated_at, g.superseded_by, g.superseded_at,
    g.agent_id, g.run_id, g.tags, g.metadata, g.attribute_bytes
from merged_memories g where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = any(@ids::uuid[])
returning id, bucket_id, text;

-- name: RelinkRestored :exec
-- Undoes RelinkMerged.
update memories o set superseded_by = g.id from merged_memories g
where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = any(@ids::uuid[])
    and o.tenant_id = g.tenant_id and o.user_id = g.user_id and o.id = any(g.relinked) and o.superseded_by = g.merged_into;

-- name: DeleteRestored :exec
delete from merged_memories where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]);

-- name: DeleteMergedTree :many
-- Deletes merged memories with what was merged into them.
delete from merged_memories d where d.tenant_id = @tenant_id and d.user_id = @user_id
    and d.id = any(array(select r.id from merged_memories r where r.tenant_id = @tenant_id and r.user_id = @user_id and r.id = any(@ids::uuid[])
        union select merged_tree(@tenant_id, @user_id, array(
            select r.id from merged_memories r where r.tenant_id = @tenant_id and r.user_id = @user_id and r.id = any(@ids::uuid[])))))
returning d.id, (d.id = any(@ids::uuid[]))::boolean as named;

-- name: PurgeMerged :exec
-- Memories that were written before the deletion of the account and merged into later ones.
delete from merged_memories where tenant_id = @tenant_id and user_id = @user_id and seq <= @up_to;

-- name: MergeLevels :many
-- How many merges are above each merged memory among the ids, at most @most.
with recursive up as (
    select g.id, g.merged_into as parent, g.merged_into as above, 1 as level from merged_memories g
    where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = any(@ids::uuid[])
    union all
    select u.id, u.parent, g.merged_into, u.level + 1 from up u
    join merged_memories g on g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = u.above
    where u.level < @most::int
)
select id::text as id, parent::text as parent, max(level)::int as level from up group by id, parent;

-- name: RestoreMergedMemories :many
-- Copies restored memories that the export has as merged, before DeleteMergedSources deletes them. One whose kept memory
-- does not exist stays a memory.
insert into merged_memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source, version, created_at, updated_at, superseded_by, superseded_at,
    agent_id, run_id, tags, metadata, attribute_bytes, merged_into, merged_at)
select m.tenant_id, m.user_id, m.id, m.seq, m.bucket_id, m.text, m.tokens, m.source, m.version, m.created_at, m.updated_at, m.superseded_by, m.superseded_at,
    m.agent_id, m.run_id, m.tags, m.metadata, m.attribute_bytes, w.merged_into, w.merged_at
from (select unnest(@ids::uuid[]) as id, unnest(@merged_into::uuid[]) as merged_into, unnest(@merged_at::timestamptz[]) as merged_at) w
join memories m on m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = w.id
where exists (select from memories k where k.tenant_id = m.tenant_id and k.user_id = m.user_id and k.id = w.merged_into)
    or exists (select from merged_memories k where k.tenant_id = m.tenant_id and k.user_id = m.user_id and k.id = w.merged_into)
returning id;
