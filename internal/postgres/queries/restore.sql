-- name: AccountIsEmpty :one
-- Ignores the default bucket, which every user has.
select (not exists (select from memories m where m.tenant_id = @tenant_id and m.user_id = @user_id)
    and not exists (select from conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id)
    and not exists (select from buckets b where b.tenant_id = @tenant_id and b.user_id = @user_id and not b.is_default))::boolean as empty;

-- name: DeleteDefaultBucket :exec
delete from buckets where tenant_id = @tenant_id and user_id = @user_id and is_default;

-- name: RestoreBuckets :exec
-- Keeps the ids, which are unique per user.
insert into buckets (tenant_id, user_id, id, name, name_key, description, is_default, created_at) overriding system value
select @tenant_id, @user_id, b.id, b.name, b.name_key, b.description, b.is_default, b.created_at
from (select unnest(@ids::bigint[]) as id, unnest(@names::text[]) as name, unnest(@name_keys::text[]) as name_key,
    unnest(@descriptions::text[]) as description, unnest(@defaults::boolean[]) as is_default,
    unnest(@times::timestamptz[]) as created_at) b
on conflict do nothing;

-- name: LockRestore :one
select platform, notes from imports
where tenant_id = @tenant_id and user_id = @user_id and id = @id and worker = @worker and status = 'running'
for update;

-- name: BeginRestore :exec
update imports set platform = @platform, total = @total where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: SetRestoreProgress :exec
update imports set notes = @notes, attempts = 0, killed = 0, version = version + 1, leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: UserBuckets :many
select id from buckets where tenant_id = @tenant_id and user_id = @user_id order by is_default desc, id;

-- name: RestoreMemories :many
-- In the order given, after existing memories. Skips memories that exist.
with numbered as (
    update users u set memory_seq = u.memory_seq + cardinality(@ids::uuid[]) where u.tenant_id = @tenant_id and u.id = @user_id
    returning u.memory_seq - cardinality(@ids::uuid[]) as base
)
insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source, version, created_at, updated_at,
    superseded_by, superseded_at, agent_id, run_id, tags, metadata, attribute_bytes)
select @tenant_id, @user_id, m.id, numbered.base + m.n, m.bucket_id, m.text, m.tokens, m.source, m.version, m.created_at, m.updated_at,
    nullif(m.superseded_by, '')::uuid, case when m.superseded_by <> '' then m.superseded_at end,
    m.agent_id, m.run_id, array(select jsonb_array_elements_text(m.tags::jsonb)), m.metadata::jsonb, m.attribute_bytes
from numbered, (select generate_subscripts(@ids::uuid[], 1) as n, unnest(@ids::uuid[]) as id, unnest(@buckets::bigint[]) as bucket_id,
    unnest(@texts::text[]) as text, unnest(@tokens::int[]) as tokens, unnest(@sources::text[]) as source,
    unnest(@versions::int[]) as version, unnest(@created::timestamptz[]) as created_at, unnest(@updated::timestamptz[]) as updated_at,
    unnest(@superseded_by::text[]) as superseded_by, unnest(@superseded_at::timestamptz[]) as superseded_at,
    unnest(@agent_ids::text[]) as agent_id, unnest(@run_ids::text[]) as run_id, unnest(@tags::text[]) as tags, unnest(@metadata::text[]) as metadata,
    unnest(@attribute_bytes::int[]) as attribute_bytes) m
on conflict (tenant_id, user_id, id) do nothing
returning id;

-- name: RestoreVersions :exec
insert into memory_versions (tenant_id, user_id, memory_id, version, text, created_at)
select @tenant_id, @user_id, v.memory_id, v.version, v.text, v.created_at
from (select unnest(@memory_ids::uuid[]) as memory_id, unnest(@versions::int[]) as version, unnest(@texts::text[]) as text,
    unnest(@times::timestamptz[]) as created_at) v;

-- name: RestoreMemoryUnits :many
insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv)
select @tenant_id, @user_id, 1, p.group_id, p.memory_id, p.span_start, p.span_end, to_tsvector('english', p.lexical)
from (select unnest(@memory_ids::uuid[]) as memory_id, unnest(@groups::bigint[]) as group_id, unnest(@starts::int[]) as span_start,
    unnest(@ends::int[]) as span_end, unnest(@lexicals::text[]) as lexical) p
returning id;

-- name: ConversationQuotaLeft :one
select least(q.conversations - u.conversations, q.user_conversations - x.conversations)::bigint as left_over
from usage u join quotas q on q.tenant_id = u.tenant_id join users x on x.tenant_id = u.tenant_id and x.id = @user_id
where u.tenant_id = @tenant_id;

-- name: BlockedOfImport :many
-- Filters the ids and keeps their order. A join may read all blocked conversations of the import, hence the lookup by key, which the
-- order of ids makes the planner choose even without statistics. See DescribeUnits.
select c.id::text as id
from (select generate_subscripts(@ids::uuid[], 1) as n, unnest(@ids::uuid[]) as id) w
cross join lateral (
    select x.id, x.status = 'blocked' and x.import_id = @import_id as matches from conversations x
    where x.tenant_id = @tenant_id and x.user_id = @user_id and x.id between w.id and w.id
    order by x.id limit 1
) c
where c.matches
order by w.n;
