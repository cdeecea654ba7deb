-- name: PurgeUser :exec
-- Renames and deactivates a user whose data is purged, so that the name is
-- available at once: no listed name contains a dash.
update users set active = false, purging = true, name = 'purging-' || id where tenant_id = @tenant_id and id = @id;

-- name: IsPurgingUser :one
select exists (select from users where tenant_id = @tenant_id and id = @id and purging);

-- name: ConversationsOfUser :many
-- Inactive conversations first, so that none of them is activated in between.
select id::text as id from conversations where tenant_id = @tenant_id and user_id = @user_id
order by status = 'active', id limit @batch;

-- name: MemoriesOfUser :many
select id::text as id from memories where tenant_id = @tenant_id and user_id = @user_id order by seq limit @batch;

-- name: DeletePurgedUser :exec
delete from users where tenant_id = @tenant_id and id = @id and purging;
