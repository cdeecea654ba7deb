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
