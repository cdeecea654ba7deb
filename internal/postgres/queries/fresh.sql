-- name: CreateTenant :exec
-- Like what else is here in one round trip: a thousand come at once.
with t as (
    insert into tenants (id, resource, cluster, namespace, name, display_name, suspended, deletion_policy, isolation, token_overlap)
    values (@id, @id, @cluster, @namespace, @name, @display_name, @suspended, @deletion_policy, @isolation, @token_overlap)
    returning id
), u as (
    insert into usage (tenant_id) select id from t
), q as (
    insert into quotas (tenant_id, memories, conversations, storage, users, requests_per_minute, list_tokens, user_memories, user_conversations)
    select id, @memories, @conversations, @storage, @users, @requests_per_minute, @list_tokens, @user_memories, @user_conversations from t
)
insert into users (tenant_id, name, email) select id, unnest(@names::text[]), unnest(@emails::text[]) from t;

-- name: PlaceOf :one
select t.isolation, coalesce(p.collection, '')::text as collection, coalesce(p.partition, '')::text as partition,
    coalesce(p.shared, false)::boolean as shared
from tenants t left join placements p on p.tenant_id = t.id
where t.id = @tenant_id and t.state = 'active' for share of t;

-- name: InsertPlacement :exec
-- Identities in the replicas' caches hold the placement.
with p as (
    insert into placements (tenant_id, generation, collection, partition, shared)
    values (@tenant_id, @generation, @collection, @partition, @shared) returning tenant_id
)
select pg_notify('mnemo_identity', 'tenant:' || tenant_id) from p;

-- name: NoteFirstPlace :execrows
-- Of a tenant with nothing to fill a place with.
update placements p set made = @made
where p.tenant_id = @tenant_id and p.made = 0 and p.collection = @collection and p.partition = @partition
    and exists (select from tenants t where t.id = p.tenant_id and t.state = 'active')
    and not exists (select from fills f where f.tenant_id = p.tenant_id)
    and not exists (select from units u where u.tenant_id = p.tenant_id);

-- name: InstallToken :execrows
-- Of a user who is locked; nothing when the generation is not above the newest.
with t as (
    insert into tokens (tenant_id, user_id, generation, hash, issuer)
    select @tenant_id, @user_id, @generation, @hash, @issuer
    where @generation > (select coalesce(max(x.generation), 0) from tokens x where x.tenant_id = @tenant_id and x.user_id = @user_id)
    returning tenant_id, user_id
)
update users u set password_hash = coalesce(sqlc.narg('password_hash')::bytea, u.password_hash)
from t where u.tenant_id = t.tenant_id and u.id = t.user_id;
