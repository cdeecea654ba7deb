-- name: LockConversation :one
select * from conversations
where tenant_id = @tenant_id and user_id = @user_id and platform = @platform and external_id = @external_id
for update;

-- name: GetConversation :one
select * from conversations where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: InsertConversation :exec
insert into conversations (tenant_id, user_id, id, external_id, platform, platform_name, title, status,
    message_count, token_count, bytes, import_id, created_at, updated_at)
values (@tenant_id, @user_id, @id, @external_id, @platform, @platform_name, @title, @status,
    @message_count, @token_count, @bytes, @import_id, @created_at, @updated_at);

-- name: UpdateConversation :exec
update conversations set platform_name = @platform_name, title = @title, message_count = @message_count,
    token_count = @token_count, bytes = @bytes, import_id = @import_id, created_at = @created_at,
    updated_at = @updated_at, imported_at = now()
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: ListConversations :many
select * from conversations c
where c.tenant_id = @tenant_id and c.user_id = @user_id
    and (@platform::text = '' or c.platform = @platform)
    and (@title::text = '' or c.title ilike '%' || @title || '%')
    and (sqlc.narg('from_time')::timestamptz is null or c.created_at >= sqlc.narg('from_time'))
    and (sqlc.narg('to_time')::timestamptz is null or c.created_at < sqlc.narg('to_time'))
    and (not @pinned_only::boolean or c.pinned)
    and (sqlc.narg('import_id')::uuid is null or c.import_id = sqlc.narg('import_id'))
    and (@status::text = '' or c.status = @status)
order by c.created_at desc, c.id desc
limit @page offset @skip;

-- name: CountListed :one
select count(*) from conversations c
where c.tenant_id = @tenant_id and c.user_id = @user_id
    and (@platform::text = '' or c.platform = @platform)
    and (@title::text = '' or c.title ilike '%' || @title || '%')
    and (sqlc.narg('from_time')::timestamptz is null or c.created_at >= sqlc.narg('from_time'))
    and (sqlc.narg('to_time')::timestamptz is null or c.created_at < sqlc.narg('to_time'))
    and (not @pinned_only::boolean or c.pinned)
    and (sqlc.narg('import_id')::uuid is null or c.import_id = sqlc.narg('import_id'))
    and (@status::text = '' or c.status = @status);

-- name: ActiveConversations :one
select conversations from users where tenant_id = @tenant_id and id = @user_id;

-- name: DeleteConversationUnits :many
-- By name, not by cascade: their ids are for the index.
delete from units where tenant_id = @tenant_id and user_id = @user_id and conversation_id = any(@ids::uuid[])
returning id;

-- name: DeleteConversations :many
delete from conversations where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[])
returning id, status, bytes;

-- name: InsertImport :exec
insert into imports (tenant_id, user_id, id, platform, status, total, imported, updated, skipped, unchanged, failed, indexed, errors,
    version, finished_at)
values (@tenant_id, @user_id, @id, @platform, @status, 1, @imported, @updated, @skipped, @unchanged, @failed, @indexed, @errors,
    1, now());

-- name: ResolveConversations :many
select id::text as id from conversations where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]);

-- name: PinConversations :exec
update conversations set pinned = @pinned
where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]) and pinned <> @pinned;

-- name: ExcludeConversations :many
-- Returns the state each was in before.
update conversations c set status = 'excluded' from conversations o
where c.tenant_id = @tenant_id and c.user_id = @user_id and c.id = any(@ids::uuid[]) and c.status <> 'excluded'
    and o.tenant_id = c.tenant_id and o.user_id = c.user_id and o.id = c.id
returning c.id::text as id, o.status as before;

-- name: IncludeConversations :many
-- They land blocked; the re-balance grants them room.
update conversations set status = 'blocked'
where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]) and status = 'excluded'
returning id::text as id;
