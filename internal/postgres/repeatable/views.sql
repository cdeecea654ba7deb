-- The location of the vectors and the generation that serve each user: during a canary of a migration to another
-- embedding generation, a share of the users is served with the target; afterwards all are. Generation 0 if no server
-- has started yet; no collection before the tenant has a placement.
create or replace view user_placements with (security_invoker = true) as
select u.tenant_id, u.id as user_id, coalesce(n.collection, p.collection, '') as collection, coalesce(n.partition, p.partition, '') as partition,
    coalesce(n.shared, p.shared, false) as shared, coalesce(ng.id, g.id, a.id, 0)::smallint as generation_id,
    coalesce(n.cell, p.cell, '') as cell
from users u
left join placements p on p.tenant_id = u.tenant_id
left join embedding_generations g on g.name = p.generation
left join embedding_generations a on a.active and p.tenant_id is null
left join embedding_migrations m on m.finished_at is null
    and (m.phase = 'completing' or m.phase = 'canary' and mod(u.id * 61, 100) < m.canary_percent)
left join embedding_targets n on n.tenant_id = u.tenant_id and n.state = 'ready' and m.id is not null
left join embedding_generations ng on ng.name = n.generation;

-- The memories, conversations and units that users see and searches use: the only definition of live (ADR 42). Reads
-- use these views, and writes the tables; TestReadsUseLiveViews lists the exceptions. The columns are named so that a
-- new one changes this file, which is then applied again. PostgreSQL inlines the views: a statement has the plan, and
-- the partial indexes, of one that reads the table.

-- Merged memories are in merged_memories, and deleted ones have no row.
create or replace view live_memories with (security_invoker = true) as
select tenant_id, user_id, id, seq, bucket_id, text, tokens, source, version, created_at, updated_at, superseded_by,
    superseded_at, agent_id, run_id, tags, metadata, attribute_bytes
from memories;

-- Lists show blocked and excluded conversations with their status. Their units are not live.
create or replace view live_conversations with (security_invoker = true) as
select tenant_id, user_id, id, external_id, platform, platform_name, title, status, pinned, message_count, token_count,
    bytes, import_id, created_at, updated_at, imported_at, exported_at
from conversations;

-- Units are active unless their conversation is blocked or excluded.
create or replace view live_units with (security_invoker = true) as
select tenant_id, user_id, id, kind, group_id, memory_id, conversation_id, seq, span_start, span_end, tsv, embedding,
    indexed_at, created_at, generation_id, next_embedding, next_generation_id, piece
from units where active;
