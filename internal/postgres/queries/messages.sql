-- name: ListMessages :many
select conversation_id::text as conversation, seq, external_id, sender, text, tokens, created_at, exported from messages
where tenant_id = @tenant_id and user_id = @user_id and conversation_id = any(@ids::uuid[])
order by conversation_id, seq;

-- name: InsertMessages :exec
insert into messages (tenant_id, user_id, conversation_id, seq, external_id, sender, text, tokens, created_at, exported)
select @tenant_id, @user_id, m.conversation_id, m.seq, m.external_id, m.sender, m.text, m.tokens, m.created_at, m.exported
from (select unnest(@conversation_ids::uuid[]) as conversation_id, unnest(@seqs::int[]) as seq, unnest(@external_ids::text[]) as external_id,
    unnest(@senders::text[]) as sender, unnest(@texts::text[]) as text, unnest(@tokens::int[]) as tokens,
    unnest(@times::timestamptz[]) as created_at, unnest(@exported::boolean[]) as exported) m;

-- name: ReplaceMessages :exec
update messages o set external_id = m.external_id, sender = m.sender, text = m.text, tokens = m.tokens, created_at = m.created_at,
    exported = m.exported
from (select unnest(@conversation_ids::uuid[]) as conversation_id, unnest(@seqs::int[]) as seq, unnest(@external_ids::text[]) as external_id,
    unnest(@senders::text[]) as sender, unnest(@texts::text[]) as text, unnest(@tokens::int[]) as tokens,
    unnest(@times::timestamptz[]) as created_at, unnest(@exported::boolean[]) as exported) m
where o.tenant_id = @tenant_id and o.user_id = @user_id and o.conversation_id = m.conversation_id and o.seq = m.seq;

-- name: CutMessages :exec
-- Deletes the messages from an index on.
delete from messages where tenant_id = @tenant_id and user_id = @user_id and conversation_id = @conversation_id and seq >= @kept;

-- name: InsertChatUnits :many
-- Parses each text once, although it is part of up to five units. Part 0 is the
-- empty text. Ids ascend in the order of the arrays.
with words as materialized (
    select t.n, to_tsvector('english', t.text) as tsv
    from (select generate_subscripts(@texts::text[], 1) as n, unnest(@texts::text[]) as text) t
    union all select 0, ''::tsvector
)
insert into units (tenant_id, user_id, kind, group_id, conversation_id, seq, span_start, span_end, active, piece, tsv, embedding, generation_id)
select @tenant_id, @user_id, 2, p.group_id, p.conversation_id, p.seq, p.span_start, p.span_end, @active::boolean, nullif(p.piece, ''),
    a.tsv || b.tsv || c.tsv || d.tsv || e.tsv, p.embedding, p.generation_id
from (select generate_subscripts(@seqs::int[], 1) as n, unnest(@conversation_ids::uuid[]) as conversation_id, unnest(@groups::bigint[]) as group_id, unnest(@seqs::int[]) as seq,
    unnest(@starts::int[]) as span_start, unnest(@ends::int[]) as span_end, unnest(@pieces::text[]) as piece,
    unnest(@embeddings::bytea[]) as embedding, unnest(@generations::smallint[]) as generation_id, unnest(@part1::int[]) as part1, unnest(@part2::int[]) as part2,
    unnest(@part3::int[]) as part3, unnest(@part4::int[]) as part4, unnest(@part5::int[]) as part5) p
join words a on a.n = p.part1 join words b on b.n = p.part2 join words c on c.n = p.part3
join words d on d.n = p.part4 join words e on e.n = p.part5
order by p.n
returning id;

-- name: DeleteMessageUnits :many
delete from units where tenant_id = @tenant_id and user_id = @user_id and conversation_id = @conversation_id
    and (seq = any(@seqs::int[]) or seq >= @kept)
returning id, seq, span_start, span_end, embedding, generation_id;

-- name: Passages :many
-- The piece of the message at each position in an active conversation, and the nearest messages around it whose texts have at most so many
-- bytes together: a message may have megabytes, and may be at many positions. For the pieces, see DescribeUnits. The limit prevents plans that
-- read all messages of the user and, once there are statistics, the ids those that read all conversations.
with positions as materialized (
    select w.*, (
        select convert_to(u.piece, 'UTF8') from live_units u
        where u.tenant_id = @tenant_id and u.user_id = @user_id and u.id = w.unit and u.conversation_id = w.id and u.seq = w.seq
        limit 1) as piece
    from (select generate_subscripts(@ids::uuid[], 1) as n, unnest(@ids::uuid[]) as id, unnest(@seqs::int[]) as seq,
        unnest(@starts::int[]) as span_start, unnest(@ends::int[]) as span_end, unnest(@units::bigint[]) as unit) w
), pieces as materialized (
    select p.n, substring(c.content from p.span_start + 1 for p.span_end - p.span_start) as piece
    from (
        select t.ns, t.starts, t.ends, convert_to((
            select o.text from messages o
            where o.tenant_id = @tenant_id and o.user_id = @user_id and o.conversation_id = t.id and o.seq between t.seq and t.seq
            order by o.seq limit 1), 'UTF8') as content
        from (
            select id, seq, array_agg(n) as ns, array_agg(span_start) as starts, array_agg(span_end) as ends from positions
            where piece is null group by id, seq
        ) t offset 0
    ) c
    cross join lateral (select unnest(c.ns) as n, unnest(c.starts) as span_start, unnest(c.ends) as span_end) p
)
select p.n::int as n, p.seq::int as position_seq, sqlc.embed(c), m.seq, m.external_id, m.sender, m.tokens, m.created_at,
    case when m.seq = p.seq then coalesce(p.piece, (select x.piece from pieces x where x.n = p.n)) end::bytea as piece,
    octet_length(m.text) as length, case when m.seq <> p.seq then m.text else '' end::text as text
from positions p
join live_conversations c on c.tenant_id = @tenant_id and c.user_id = @user_id and c.id = p.id and c.id = any(@ids::uuid[]) and c.status = 'active'
cross join lateral (
    select g.seq, g.external_id, g.sender, g.text, g.tokens, g.created_at,
        sum(case when g.seq <> p.seq then octet_length(g.text) else 0 end) over (order by abs(g.seq - p.seq), g.seq) as bytes
    from (
        select o.seq, o.external_id, o.sender, o.text, o.tokens, o.created_at from messages o
        where o.tenant_id = @tenant_id and o.user_id = @user_id and o.conversation_id = c.id
            and o.seq between p.seq - @around::int and p.seq + @around::int
        order by o.seq limit @most::int) g
) m
where m.bytes <= @bytes::bigint
order by p.n, m.seq;

-- name: Openings :many
-- The beginning of the user's first message in each conversation, or of the first message.
select distinct on (conversation_id) conversation_id, left(text, 400)::text as text
from messages
where tenant_id = @tenant_id and user_id = @user_id and conversation_id = any(@ids::uuid[]) and seq < 5
order by conversation_id, sender <> 'human', seq;

-- name: QuotedMessages :many
-- Messages of a day of which a unit begins like a quotation, with their units: at most 10 for each beginning. A message
-- without units begins with its text. Messages of more than 1 MiB are not searched, because all texts of the days are read. The messages of the days are read once, however many quotations there are:
-- "is true" keeps the set of beginnings a hash table, with any plan.
with written as materialized (
    select d.day, d.sender, o.conversation_id, o.seq, o.created_at, o.text, ltrim(substring(o.raw from x.span_start + 1 for 60), '\x20090d0a'::bytea) as start
    from (select distinct unnest(@days::timestamptz[]) as day, unnest(@senders::text[]) as sender) d
    cross join lateral (
        select e.conversation_id, e.seq, e.created_at, e.text, convert_to(e.text, 'UTF8') as raw from messages e
        where e.tenant_id = @tenant_id and e.user_id = @user_id and e.created_at >= d.day and e.created_at < d.day + interval '24 hours'
            and e.sender = d.sender and octet_length(e.text) <= 1048576
        offset 0) o
    cross join lateral (
        select i.span_start from units i
        where i.tenant_id = @tenant_id and i.user_id = @user_id and i.conversation_id = o.conversation_id and i.seq = o.seq
        union select 0) x
), openings as materialized (
    select w.day, w.sender, w.conversation_id, w.seq, w.created_at, w.text, substring(w.start from 1 for l.length) as opening, l.length
    from written w cross join (select distinct octet_length(b) as length from unnest(@openings::bytea[]) b) l
    where (substring(w.start from 1 for l.length) in (select unnest(@openings::bytea[]))) is true
), found as (
    select o.day, o.sender, o.conversation_id, o.seq, o.text, o.opening,
        row_number() over (partition by o.day, o.sender, o.opening order by o.created_at, o.conversation_id, o.seq) as place
    from openings o where octet_length(o.opening) = o.length
)
select q.n::int as n, c.title, m.text, coalesce(u.starts, '{}')::int[] as starts, coalesce(u.ends, '{}')::int[] as ends
from (select generate_subscripts(@days::timestamptz[], 1) as n, unnest(@days::timestamptz[]) as day, unnest(@senders::text[]) as sender,
    unnest(@openings::bytea[]) as opening, unnest(@seqs::int[]) as seq) q
join found m on m.day = q.day and m.sender = q.sender and m.opening = q.opening and m.place <= 10
join live_conversations c on c.tenant_id = @tenant_id and c.user_id = @user_id and c.id = m.conversation_id
left join lateral (
    select array_agg(p.span_start order by p.span_start) as starts, array_agg(p.span_end order by p.span_start) as ends from units p
    where p.tenant_id = @tenant_id and p.user_id = @user_id and p.conversation_id = m.conversation_id and p.seq = m.seq) u on true
where m.conversation_id <> @conversation_id::uuid or m.seq <> q.seq;

-- name: QuotedMemories :many
-- Memories that begin like a quotation, at most 10 for each beginning. They are read once, as in QuotedMessages.
with written as materialized (
    select ltrim(e.text, E' \t\r\n') as start, e.text, e.seq from live_memories e where e.tenant_id = @tenant_id and e.user_id = @user_id
), openings as materialized (
    select left(w.start, l.length) as opening, l.length, w.text, w.seq
    from written w cross join (select distinct char_length(b) as length from unnest(@openings::text[]) b) l
    where (left(w.start, l.length) in (select unnest(@openings::text[]))) is true
), found as (
    select o.opening, o.text, row_number() over (partition by o.opening order by o.seq) as place from openings o where char_length(o.opening) = o.length
)
select q.n::int as n, m.text
from (select generate_subscripts(@openings::text[], 1) as n, unnest(@openings::text[]) as opening) q
join found m on m.opening = q.opening and m.place <= 10;
