-- name: Lexical :many
select unit_id::bigint as id, score::float8 as score from lexical_ranking(@tenant_id::uuid, @user_id::bigint, @kind::smallint, @group_id::bigint,
    sqlc.narg('from_time')::timestamptz, sqlc.narg('to_time')::timestamptz,
    sqlc.narg('after_time')::timestamptz, sqlc.narg('before_time')::timestamptz, @query::text, @count::int, sqlc.narg('memories')::uuid[]);

-- name: ResolveMemoryUnits :many
-- Each unit is looked up by its id, and then its memory. Without statistics, as after an import, the
-- planner would read all units and memories of the user for each. See DescribeUnits.
select u.id, u.memory_id::text as owner, u.seq, u.span_start, u.span_end, m.superseded
from unnest(@ids::bigint[]) w(id)
cross join lateral (
    select n.id, n.memory_id, n.seq, n.span_start, n.span_end from live_units n
    where n.tenant_id = @tenant_id and n.user_id = @user_id and n.id = w.id and n.kind = 1
        and (@group_id::bigint = 0 or n.group_id = @group_id)
    limit 1
) u
cross join lateral (
    select (m.superseded_by is not null)::boolean as superseded from live_memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = u.memory_id
        and (sqlc.narg('from_time')::timestamptz is null or m.created_at >= sqlc.narg('from_time'))
        and (sqlc.narg('to_time')::timestamptz is null or m.created_at < sqlc.narg('to_time'))
    limit 1
) m;

-- name: ResolveChatUnits :many
-- See ResolveMemoryUnits.
select u.id, u.conversation_id::text as owner, u.seq, u.span_start, u.span_end, g.created_at as at
from unnest(@ids::bigint[]) w(id)
cross join lateral (
    select n.id, n.conversation_id, n.seq, n.span_start, n.span_end from live_units n
    where n.tenant_id = @tenant_id and n.user_id = @user_id and n.id = w.id and n.kind = 2
        and (@group_id::bigint = 0 or n.group_id = @group_id)
        and (sqlc.narg('from_time')::timestamptz is null and sqlc.narg('to_time')::timestamptz is null or exists (
            select from live_conversations o where o.tenant_id = @tenant_id and o.user_id = @user_id and o.id = n.conversation_id
                and o.created_at >= coalesce(sqlc.narg('from_time'), '-infinity') and o.created_at < coalesce(sqlc.narg('to_time'), 'infinity')))
    limit 1
) u
cross join lateral (
    select m.created_at from messages m
    where m.tenant_id = @tenant_id and m.user_id = @user_id and m.conversation_id = u.conversation_id and m.seq between u.seq and u.seq
        and (sqlc.narg('after_time')::timestamptz is null or m.created_at >= sqlc.narg('after_time'))
        and (sqlc.narg('before_time')::timestamptz is null or m.created_at < sqlc.narg('before_time'))
    order by m.seq limit 1
) g;

-- name: LoadUnits :many
-- Live units with their text; memories have no sender. Each is looked up apart: without statistics, a join may read all units or memories
-- of the tenant for one unit. See DescribeUnits for the order and the pieces.
with found as materialized (
    select u.id, u.user_id, u.kind, u.group_id, coalesce(u.memory_id, u.conversation_id) as owner, u.seq, u.span_start, u.span_end,
        u.embedding, u.generation_id, u.next_embedding, u.next_generation_id, u.piece, o.sender, o.at, case when u.piece is null then o.text end as text
    from (select distinct unnest(@ids::bigint[]) as id) w
    cross join lateral (
        select n.id, n.user_id, n.kind, n.group_id, n.memory_id, n.conversation_id, n.seq, n.span_start, n.span_end,
            n.embedding, n.generation_id, n.next_embedding, n.next_generation_id, n.piece
        from live_units n where n.tenant_id = @tenant_id and n.id between w.id and w.id
        order by n.id limit 1
    ) u
    cross join lateral (
        (select ''::text as sender, 'epoch'::timestamptz as at, m.text from live_memories m
            where m.tenant_id = @tenant_id and m.user_id = u.user_id and m.id = u.memory_id limit 1)
        union all
        (select g.sender, g.created_at, g.text from messages g
            where g.tenant_id = @tenant_id and g.user_id = u.user_id and g.conversation_id = u.conversation_id and g.seq between u.seq and u.seq
            order by g.seq limit 1)
    ) o
), pieces as materialized (
    select p.id, convert_from(substring(c.content from p.span_start + 1 for p.span_end - p.span_start), 'UTF8') as piece
    from (
        select t.ids, t.starts, t.ends, convert_to(t.text, 'UTF8') as content
        from (
            select distinct on (user_id, kind, owner, seq) text, array_agg(id) over w as ids, array_agg(span_start) over w as starts, array_agg(span_end) over w as ends
            from found where piece is null window w as (partition by user_id, kind, owner, seq)
        ) t offset 0
    ) c
    cross join lateral (select unnest(c.ids) as id, unnest(c.starts) as span_start, unnest(c.ends) as span_end) p
)
select f.id, f.user_id, f.kind, f.group_id, f.owner::text as owner, f.seq, f.span_start, f.span_end,
    f.embedding, f.generation_id, f.next_embedding, f.next_generation_id, f.sender, f.at, coalesce(f.piece, p.piece)::text as piece
from found f left join pieces p on p.id = f.id;

-- name: PlanEachExecution :exec
-- Makes PostgreSQL plan the next statements of the transaction for their parameters and the present size of the tables. Until tables have statistics,
-- a plan of a small table that PostgreSQL keeps reads ever more rows.
select set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: SaveVectors :exec
-- Keeps a vector of another generation: its users may still be served with it. Adds the tokens of the units that have no
-- vector yet to the usage. Confirms units with the same write: each write of a row adds all of its index entries again. The
-- transaction holds the lock of the usage row. Selecting by the ids, and PlanEachExecution, keep the planner from reading all units of the tenant.
-- The users exclude the other partitions, each of which would have to be planned. All kinds are named because the kind precedes the id in an index that
-- PostgreSQL may prefer without statistics: it would read the entries of all units of the user.
with v as materialized (
    select unnest(@ids::bigint[]) as id, unnest(@embeddings::bytea[]) as embedding, unnest(@tokens::bigint[]) as tokens, unnest(@confirmed::boolean[]) as confirmed
), counted as (
    update usage s set embedded_tokens = s.embedded_tokens + n.tokens
    from (select sum(v.tokens)::bigint as tokens from v join units u on u.tenant_id = @tenant_id and u.user_id = any(@user_ids::bigint[]) and u.kind in (1, 2)
            and u.id = any(@ids::bigint[]) and u.id = v.id
        where u.embedding is null and u.active) n
    where s.tenant_id = @tenant_id and n.tokens > 0
)
update units u set
    embedding = case when u.embedding is null then v.embedding else u.embedding end,
    generation_id = case when u.embedding is null then @generation_id::smallint else u.generation_id end,
    next_embedding = case when u.embedding is null then u.next_embedding else v.embedding end,
    next_generation_id = case when u.embedding is null then u.next_generation_id else @generation_id::smallint end,
    indexed_at = case when v.confirmed and u.active then coalesce(u.indexed_at, now()) else u.indexed_at end
from v
where u.tenant_id = @tenant_id and u.user_id = any(@user_ids::bigint[]) and u.kind in (1, 2) and u.id = any(@ids::bigint[]) and u.id = v.id
    and not (u.embedding is not null and u.generation_id = @generation_id::smallint)
    and u.next_generation_id is distinct from @generation_id::smallint;

-- name: MarkOutgrown :exec
-- Marks the tenant if one of the users has at_least live units of a kind, one more than are scored exactly. If the tenant is marked
-- already, this reads one row. See LoadUnits for the order.
update tenants t set outgrown_at = now()
where t.id = @tenant_id and t.outgrown_at is null and exists (
    select 1 from (
        select distinct u.user_id, u.kind from unnest(@ids::bigint[]) i(id)
        cross join lateral (
            select n.user_id, n.kind from units n where n.tenant_id = t.id and n.user_id = any(@user_ids::bigint[]) and n.id between i.id and i.id
            order by n.id limit 1
        ) u
    ) w
    where (select count(*) from (
        select 1 from units n where n.tenant_id = t.id and n.user_id = any(@user_ids::bigint[]) and n.user_id = w.user_id and n.kind = w.kind and n.active limit @at_least) x) >= @at_least::bigint);

-- name: ConfirmUnits :exec
-- Keeps the time of units confirmed before: updating a unit rewrites its tsvector. See SaveVectors for the users and kinds.
update units set indexed_at = now()
where tenant_id = @tenant_id and user_id = any(@user_ids::bigint[]) and kind in (1, 2) and id = any(@ids::bigint[]) and active and indexed_at is null;

-- name: LiveUnitsOf :many
-- See LoadUnits.
select u.id from (select distinct unnest(@ids::bigint[]) as id) w
cross join lateral (
    select n.id from live_units n where n.tenant_id = @tenant_id and n.id between w.id and w.id
    order by n.id limit 1
) u;

-- name: LiveUnits :many
select id from live_units where tenant_id = @tenant_id and id > @after order by id limit @count;

-- name: UnconfirmedUnits :many
select id from live_units where tenant_id = @tenant_id and id > @after and indexed_at is null order by id limit @count;

-- name: CountConfirmed :one
-- Those that the index contained before now. A margin excludes units that a job is writing.
select count(*) from live_units
where tenant_id = @tenant_id and id = any(@ids::bigint[]) and indexed_at < now() - interval '1 minute';

-- name: CountUnits :one
-- Counts up to at_most.
select count(*) from (
    select from live_units where tenant_id = @tenant_id and user_id = @user_id and kind = @kind limit @at_most
) u;

-- name: Embeddings :many
-- The kinds, which are all, complete the condition of the index units_kind. Otherwise, PostgreSQL may read all units of the user.
select u.id, u.embedding from live_units u
where u.tenant_id = @tenant_id and u.user_id = @user_id and u.kind = any('{1,2}') and u.id = any(@ids::bigint[]) and u.embedding is not null
    and u.generation_id = @generation_id::smallint
union all
select n.id, n.next_embedding from live_units n
where n.tenant_id = @tenant_id and n.user_id = @user_id and n.kind = any('{1,2}') and n.id = any(@ids::bigint[])
    and n.next_generation_id = @generation_id::smallint;

-- name: DescribeUnits :many
-- The units with their text, and without text the 8 nearest of the message before and of the one after. A message may have tens of
-- thousands of units, which no index sorts by their place: the 8 are among the 256 that are stored nearest. The heading is the title, for the unit to which retrieve.ChatUnits adds it (retrieve.Titled, among the first retrieve.MaxTitled messages); it reads only the beginning of each message.
-- Units of long messages have their text. Other texts are converted once, however many of their pieces are wanted. The offset keeps the conversion out of the join with the pieces.
-- Without statistics, as after an import, every index seems equally good to the planner, or better if it is smaller,
-- and it may read all messages of the user for each unit. Sorting by seq, with "between"
-- because a constant needs no sorting, makes it choose the index that ends with seq. The smaller one, of times, has a condition
-- (messages_created).
with found as materialized (
    select u.*, g.sender, g.created_at as at, case when u.piece is null then g.text end as text,
        case when u.seq < 5 and u.seq = (
            select e.seq from messages e
            where e.tenant_id = @tenant_id and e.user_id = @user_id and e.conversation_id = u.conversation_id and e.seq < 5
                and e.sender <> 'system' and left(e.text, 1024) ~ '\S'
            order by e.seq limit 1
        ) and not exists (
            select from live_units e
            where e.tenant_id = @tenant_id and e.user_id = @user_id and e.conversation_id = u.conversation_id and e.seq between u.seq and u.seq
                and e.span_start < u.span_start
        ) then (
            select o.title from live_conversations o where o.tenant_id = @tenant_id and o.user_id = @user_id and o.id = u.conversation_id limit 1
        ) else '' end as heading
    from unnest(@ids::bigint[]) w(id)
    cross join lateral (
        select n.id, n.conversation_id, n.seq, n.span_start, n.span_end, n.piece,
            case @generation_id::smallint when n.generation_id then n.embedding when n.next_generation_id then n.next_embedding end::bytea as embedding
        from live_units n
        where n.tenant_id = @tenant_id and n.user_id = @user_id and n.id = w.id and n.kind = 2
            and (@group_id::bigint = 0 or n.group_id = @group_id)
            and (sqlc.narg('from_time')::timestamptz is null and sqlc.narg('to_time')::timestamptz is null or exists (
                select from live_conversations o where o.tenant_id = @tenant_id and o.user_id = @user_id and o.id = n.conversation_id
                    and o.created_at >= coalesce(sqlc.narg('from_time'), '-infinity') and o.created_at < coalesce(sqlc.narg('to_time'), 'infinity')))
        limit 1
    ) u
    cross join lateral (
        select m.sender, m.created_at, m.text from messages m
        where m.tenant_id = @tenant_id and m.user_id = @user_id and m.conversation_id = u.conversation_id and m.seq between u.seq and u.seq
            and (sqlc.narg('after_time')::timestamptz is null or m.created_at >= sqlc.narg('after_time'))
            and (sqlc.narg('before_time')::timestamptz is null or m.created_at < sqlc.narg('before_time'))
        order by m.seq limit 1
    ) g
), pieces as materialized (
    select p.id, convert_from(substring(c.content from p.span_start + 1 for p.span_end - p.span_start), 'UTF8') as piece
    from (
        select t.ids, t.starts, t.ends, convert_to(t.text, 'UTF8') as content
        from (
            select distinct on (conversation_id, seq) text, array_agg(id) over w as ids, array_agg(span_start) over w as starts, array_agg(span_end) over w as ends
            from found where piece is null window w as (partition by conversation_id, seq)
        ) t offset 0
    ) c
    cross join lateral (select unnest(c.ids) as id, unnest(c.starts) as span_start, unnest(c.ends) as span_end) p
), positions as materialized (
    select conversation_id, seq + d as seq, bool_or(d < 0) as before, bool_or(d > 0) as after
    from found, (values (-1), (1)) v(d) group by 1, 2
)
select f.id, f.conversation_id::text as owner, f.seq, f.span_start, f.span_end, f.embedding, f.sender, f.at, coalesce(f.piece, p.piece)::text as piece, f.heading::text as heading
from found f left join pieces p on p.id = f.id
union all
select u.id, p.conversation_id::text, p.seq, 0, 0, u.embedding, '', 'epoch', '', ''
from positions p
cross join lateral (
    (select n.id, n.embedding
    from (
        select n.id, n.span_start, case @generation_id::smallint when n.generation_id then n.embedding when n.next_generation_id then n.next_embedding end::bytea as embedding
        from live_units n
        where p.before and n.tenant_id = @tenant_id and n.user_id = @user_id and n.conversation_id = p.conversation_id and n.seq between p.seq and p.seq
            and n.kind = 2 and n.id <> all(@ids::bigint[])
        order by n.seq desc limit 256
    ) n
    order by n.span_start desc limit 8)
    union
    (select n.id, n.embedding
    from (
        select n.id, n.span_start, case @generation_id::smallint when n.generation_id then n.embedding when n.next_generation_id then n.next_embedding end::bytea as embedding
        from live_units n
        where p.after and n.tenant_id = @tenant_id and n.user_id = @user_id and n.conversation_id = p.conversation_id and n.seq between p.seq and p.seq
            and n.kind = 2 and n.id <> all(@ids::bigint[])
        order by n.seq limit 256
    ) n
    order by n.span_start limit 8)
) u;

-- name: DescribeMemoryUnits :many
-- The units with their text, looked up as in ResolveMemoryUnits. The names of buckets are read once.
select u.id, u.memory_id::text as owner, u.span_start, u.span_end, u.embedding, m.superseded,
    convert_from(substring(convert_to(m.text, 'UTF8') from u.span_start + 1 for u.span_end - u.span_start), 'UTF8')::text as piece,
    coalesce((select jsonb_object_agg(b.id, b.name) from buckets b where b.tenant_id = @tenant_id and b.user_id = @user_id and not b.is_default)
        ->> u.group_id::text, '')::text as heading
from unnest(@ids::bigint[]) w(id)
cross join lateral (
    select n.id, n.memory_id, n.group_id, n.span_start, n.span_end,
        case @generation_id::smallint when n.generation_id then n.embedding when n.next_generation_id then n.next_embedding end::bytea as embedding
    from live_units n
    where n.tenant_id = @tenant_id and n.user_id = @user_id and n.id = w.id and n.kind = 1
        and (@group_id::bigint = 0 or n.group_id = @group_id)
    limit 1
) u
cross join lateral (
    select m.text, (m.superseded_by is not null)::boolean as superseded from live_memories m
    where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = u.memory_id
        and (sqlc.narg('from_time')::timestamptz is null or m.created_at >= sqlc.narg('from_time'))
        and (sqlc.narg('to_time')::timestamptz is null or m.created_at < sqlc.narg('to_time'))
    limit 1
) m;
