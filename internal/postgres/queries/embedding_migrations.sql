-- name: StartEmbeddingMigration :one
insert into embedding_migrations (target_id, canary_percent, canary_seconds, rate, forced)
values (@target_id, @canary_percent, @canary_seconds, @rate, @forced) returning id;

-- name: LatestEmbeddingMigration :many
-- At most one row.
select m.id, m.target_id, coalesce(g.model, g.name) as model, m.phase, m.reason, m.canary_percent, m.canary_seconds, m.rate, m.forced, m.probes, m.source_score, m.target_score,
    m.started_at, m.finished_at, extract(epoch from now() - m.phase_at)::float8 as phase_age, extract(epoch from now() - m.heartbeat_at)::float8 as idle,
    (select count(*) from placements p where p.generation <> g.name and not exists (
        select from embedding_targets n where n.tenant_id = p.tenant_id and n.state = 'ready')) as pending,
    (select count(*) from embedding_targets n where n.state = 'ready') as ready,
    (select count(*) from placements p where p.generation = g.name) as migrated
from embedding_migrations m join embedding_generations g on g.id = m.target_id
order by m.id desc limit 1;

-- name: BeatEmbeddingMigration :exec
update embedding_migrations set heartbeat_at = now() where finished_at is null;

-- name: ScoreEmbeddingMigration :exec
update embedding_migrations set probes = @probes, source_score = @source_score, target_score = @target_score, heartbeat_at = now() where id = @id;

-- name: EnterEmbeddingPhase :execrows
update embedding_migrations set phase = @to_phase, reason = @reason, phase_at = now(), heartbeat_at = now(),
    finished_at = case when @to_phase in ('completed', 'rolled back') then now() end
where id = @id and phase = any(@from_phases::text[]);

-- name: DeactivateGenerations :exec
update embedding_generations set active = false where active and id <> @id;

-- name: NotifyAllTenants :exec
-- Replicas drop the cached placement of every user.
select pg_notify('mnemo_identity', 'tenant:' || p.tenant_id) from placements p;

-- name: PendingEmbeddingTenants :many
-- Tenants whose vectors are not complete in the target, in any state but purging.
select p.tenant_id from placements p join tenants t on t.id = p.tenant_id and t.state <> 'purging'
left join embedding_targets n on n.tenant_id = p.tenant_id
where p.generation <> @generation and n.state is distinct from 'ready'
order by n.cursor desc nulls last, p.tenant_id limit 100;

-- name: EmbeddingTenants :many
-- Tenants with a target, in any state.
select n.tenant_id, n.state from embedding_targets n order by n.state desc, n.tenant_id limit 100;

-- name: GenerationName :one
select name from embedding_generations where id = @id;

-- name: TenantPlacementKind :one
select p.cell, p.collection, p.shared from placements p join tenants t on t.id = p.tenant_id and t.state <> 'purging' where p.tenant_id = @tenant_id for update of p;

-- name: LockEmbeddingPhase :many
-- Returns a row while tenants migrate to the target.
select id from embedding_migrations where id = @id and phase in ('copying', 'canary', 'completing') for share;

-- name: HasEmbeddingTarget :one
select exists (select from embedding_targets where tenant_id = @tenant_id);

-- name: InsertEmbeddingTarget :exec
insert into embedding_targets (tenant_id, generation, cell, collection, partition, shared) values (@tenant_id, @generation, @cell, @collection, @partition, @shared);

-- name: SetEmbeddingTargetPartition :execrows
-- Another partition is empty: the copy starts again, and users are served with the other generation until it is complete.
update embedding_targets set partition_id = @partition_id, cursor = 0, state = 'copying'
where tenant_id = @tenant_id and cell = @cell and collection = @collection and partition = @partition and partition_id <> @partition_id and state <> 'cleaning';

-- name: IsEmbeddingTarget :one
select exists (select from embedding_targets where tenant_id = @tenant_id and cell = @cell and collection = @collection and partition = @partition and state <> 'cleaning');

-- name: AdvanceEmbeddingTarget :execrows
update embedding_targets n set cursor = greatest(n.cursor, @cursor), state = case when @ready::boolean then 'ready' else n.state end
where n.tenant_id = @tenant_id and n.cell = @cell and n.collection = @collection and n.partition = @partition and n.partition_id = @partition_id and n.state <> 'cleaning'
    and exists (select from embedding_migrations m where m.finished_at is null and m.phase <> 'rolling back');

-- name: MovePlacementToGeneration :exec
update placements p set generation = n.generation, cell = n.cell, collection = n.collection, partition = n.partition, shared = n.shared, partition_id = n.partition_id
from embedding_targets n where p.tenant_id = @tenant_id and n.tenant_id = p.tenant_id;

-- name: CleanEmbeddingTarget :exec
update embedding_targets set state = 'cleaning' where tenant_id = @tenant_id;

-- name: DeleteEmbeddingTarget :exec
delete from embedding_targets where tenant_id = @tenant_id and state = 'cleaning';

-- name: KeepGeneration :one
-- Deletes the vectors of other generations from a batch of units, and returns the last id of the batch, 0 if it is empty. Other transactions
-- may delete its units meanwhile. A unit without a vector is no longer confirmed, so that sweeps embed it.
with batch as materialized (
    select o.id from units o where o.tenant_id = @tenant_id and o.id > @after
        and (o.next_generation_id is not null or o.embedding is not null and o.generation_id is distinct from @generation_id::smallint)
    order by o.id limit @batch
), kept as (
    update units u set
        indexed_at = case when case @generation_id::smallint when u.generation_id then u.embedding when u.next_generation_id then u.next_embedding end is not null
            then u.indexed_at end,
        embedding = case @generation_id::smallint when u.generation_id then u.embedding when u.next_generation_id then u.next_embedding end,
        generation_id = @generation_id::smallint, next_embedding = null, next_generation_id = null
    from batch b where u.tenant_id = @tenant_id and u.id = b.id
)
select coalesce(max(id), 0)::bigint from batch;

-- name: ProbeUsers :many
-- Users with enough units in both generations, by kind.
select u.user_id, u.kind, count(*) as units from live_units u
where u.tenant_id = @tenant_id and u.embedding is not null and u.next_embedding is not null
group by u.user_id, u.kind having count(*) >= @at_least::bigint order by random() limit @most::bigint;

-- name: ProbeUnits :many
-- A sample of a user's units with their text, the beginning of the message before, and both vectors. See DescribeUnits for the pieces.
with found as materialized (
    select u.id, coalesce(u.memory_id, u.conversation_id) as owner, u.seq, u.span_start, u.span_end,
        u.embedding, u.generation_id, u.next_embedding, u.next_generation_id, coalesce(m.text, g.text) as text, left(b.text, 2000) as before
    from (select * from live_units x where x.tenant_id = @tenant_id and x.user_id = @user_id and x.kind = @kind
        and x.embedding is not null and x.next_embedding is not null order by random() limit @most::bigint) u
    left join live_memories m on m.tenant_id = u.tenant_id and m.user_id = u.user_id and m.id = u.memory_id
    left join messages g on g.tenant_id = u.tenant_id and g.user_id = u.user_id and g.conversation_id = u.conversation_id and g.seq = u.seq
    left join messages b on b.tenant_id = u.tenant_id and b.user_id = u.user_id and b.conversation_id = u.conversation_id and b.seq = u.seq - 1
    where coalesce(m.text, g.text) is not null
), pieces as materialized (
    select p.id, convert_from(substring(c.content from p.span_start + 1 for p.span_end - p.span_start), 'UTF8') as piece
    from (
        select t.ids, t.starts, t.ends, convert_to(t.text, 'UTF8') as content
        from (
            select distinct on (owner, seq) text, array_agg(id) over w as ids, array_agg(span_start) over w as starts, array_agg(span_end) over w as ends
            from found window w as (partition by owner, seq)
        ) t offset 0
    ) c
    cross join lateral (select unnest(c.ids) as id, unnest(c.starts) as span_start, unnest(c.ends) as span_end) p
)
select f.id, f.owner::text as owner, f.seq, f.embedding, f.generation_id, f.next_embedding, f.next_generation_id,
    p.piece::text as piece, coalesce(f.before, '')::text as before
from found f join pieces p on p.id = f.id;
