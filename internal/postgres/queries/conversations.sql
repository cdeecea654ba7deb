-- name: LockConversations :many
-- Locks in the order of ids, so that concurrent transactions do not deadlock.
select c.* from conversations c join (
    select unnest(@platforms::text[]) as platform, unnest(@external_ids::text[]) as external_id) k
    on c.platform = k.platform and c.external_id = k.external_id
where c.tenant_id = @tenant_id and c.user_id = @user_id
order by c.id for update of c;

-- name: InsertConversations :execrows
-- Skips conversations that another transaction has inserted. The zero time of Go is null.
insert into conversations (tenant_id, user_id, id, external_id, platform, platform_name, title, status,
    pinned, message_count, token_count, bytes, import_id, created_at, updated_at, exported_at)
select @tenant_id, @user_id, c.id, c.external_id, c.platform, c.platform_name, c.title, c.status,
    c.pinned, c.message_count, c.token_count, c.bytes, @import_id, c.created_at, c.updated_at, nullif(c.exported_at, '0001-01-01 00:00:00Z')
from (select unnest(@ids::uuid[]) as id, unnest(@external_ids::text[]) as external_id, unnest(@platforms::text[]) as platform,
    unnest(@platform_names::text[]) as platform_name, unnest(@titles::text[]) as title, unnest(@statuses::text[]) as status, unnest(@pinned::boolean[]) as pinned,
    unnest(@message_counts::int[]) as message_count,
    unnest(@token_counts::bigint[]) as token_count, unnest(@bytes::bigint[]) as bytes,
    unnest(@created::timestamptz[]) as created_at, unnest(@updated::timestamptz[]) as updated_at,
    unnest(@exported::timestamptz[]) as exported_at) c
order by c.platform, c.external_id
on conflict (tenant_id, user_id, platform, external_id) do nothing;

-- name: GetConversation :one
select * from live_conversations where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: FindConversation :one
select * from live_conversations where tenant_id = @tenant_id and user_id = @user_id and platform = @platform and external_id = @external_id;

-- name: UpdateConversation :exec
-- Keeps imported_at, so that a purge that began before the update still deletes the conversation.
update conversations set platform_name = @platform_name, title = @title, message_count = @message_count,
    token_count = @token_count, bytes = @bytes, import_id = @import_id, created_at = @created_at,
    updated_at = @updated_at, exported_at = sqlc.narg('exported_at')::timestamptz
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: ListConversations :many
select * from live_conversations c
where c.tenant_id = @tenant_id and c.user_id = @user_id
    and (cardinality(@platforms::text[]) = 0 or lower(c.platform) = any(@platforms))
    and (@title::text = '' or c.title ilike '%' || @title || '%')
    and (sqlc.narg('from_time')::timestamptz is null or c.created_at >= sqlc.narg('from_time'))
    and (sqlc.narg('to_time')::timestamptz is null or c.created_at < sqlc.narg('to_time'))
    and (not @pinned_only::boolean or c.pinned)
    and (sqlc.narg('import_id')::uuid is null or c.import_id = sqlc.narg('import_id'))
    and (@status::text = '' or c.status = @status)
order by c.created_at desc, c.id desc
limit @page offset @skip;

-- name: CountConversations :one
select count(*) from live_conversations c
where c.tenant_id = @tenant_id and c.user_id = @user_id
    and (cardinality(@platforms::text[]) = 0 or lower(c.platform) = any(@platforms))
    and (@title::text = '' or c.title ilike '%' || @title || '%')
    and (sqlc.narg('from_time')::timestamptz is null or c.created_at >= sqlc.narg('from_time'))
    and (sqlc.narg('to_time')::timestamptz is null or c.created_at < sqlc.narg('to_time'))
    and (not @pinned_only::boolean or c.pinned)
    and (sqlc.narg('import_id')::uuid is null or c.import_id = sqlc.narg('import_id'))
    and (@status::text = '' or c.status = @status);

-- name: HasPlatform :one
-- Steps from one platform to the next in conversations_external instead of reading
-- all conversations.
with recursive known as (
    (select c.platform from live_conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id order by c.platform limit 1)
    union all
    select n.platform from known k cross join lateral (
        select c.platform from live_conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.platform > k.platform
        order by c.platform limit 1
    ) n
)
select exists (
    select from known k join live_conversations c on c.tenant_id = @tenant_id and c.user_id = @user_id and c.platform = k.platform
    where lower(k.platform) = any(@names::text[]) and c.status = 'active'
);

-- name: CountActiveConversations :one
-- 0 for a user who does not exist.
select coalesce((select conversations from users where tenant_id = @tenant_id and id = @user_id), 0)::bigint;

-- name: DeleteConversationUnits :many
-- Explicit instead of by the trigger, because the index needs the ids.
delete from units where tenant_id = @tenant_id and user_id = @user_id and conversation_id = any(@ids::uuid[])
returning id;

-- name: DeleteConversations :many
delete from conversations where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[])
returning id, status, bytes;
