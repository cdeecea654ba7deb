-- name: CountUnfinishedImports :one
select count(*) from imports where tenant_id = @tenant_id and user_id = @user_id and kind = 'file'
    and status in ('uploading', 'queued', 'running');

-- name: LockUser :exec
-- Serializes the uploads that a user begins.
select from users where tenant_id = @tenant_id and id = @id for no key update;

-- name: BeginUpload :exec
insert into imports (tenant_id, user_id, id, kind, platform, status, stored, leased_until)
values (@tenant_id, @user_id, @id, 'file', '', 'uploading', false, now() + make_interval(secs => @lease::int));

-- name: ExtendUpload :execrows
-- Adds the bytes to an upload, and extends it and the earlier ones of its request.
update imports set chunk_bytes = chunk_bytes + case when id = @id then @bytes::bigint else 0 end,
    leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and (id = @id or id = any(@earlier::uuid[])) and status = 'uploading';

-- name: InsertChunk :exec
insert into import_chunks (tenant_id, user_id, import_id, n, data) values (@tenant_id, @user_id, @import_id, @n, @data);

-- name: LockUploads :exec
-- Serializes the commits of chunks, so that they do not exceed a limit together.
select pg_advisory_xact_lock(hashtext('mnemo.uploads'));

-- name: UploadBytes :one
select b.user_bytes::bigint as user_bytes, b.tenant_bytes::bigint as tenant_bytes, b.total_bytes::bigint as total_bytes,
    (q.storage - u.storage)::bigint as storage_left
from usage u join quotas q on q.tenant_id = u.tenant_id, upload_bytes() b
where u.tenant_id = @tenant_id;

-- name: FinishUpload :execrows
update imports set status = 'queued', requested_platform = @platform, skip_invalid = @skip_invalid, platform = @platform, file = @file, size = @size, leased_until = null,
    version = 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: DeleteUpload :exec
delete from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: DeleteExpiredUpload :execrows
delete from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading' and leased_until < now();
