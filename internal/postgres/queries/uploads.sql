-- name: StorageLeft :one
select (q.storage - u.storage)::bigint as left_over, q.storage as hard, u.storage as used
from usage u join quotas q on q.tenant_id = u.tenant_id where u.tenant_id = @tenant_id;

-- name: CountUnfinishedImports :one
select count(*) from imports where tenant_id = @tenant_id and user_id = @user_id and kind = 'file'
    and status in ('uploading', 'queued', 'running');

-- name: BeginUpload :exec
insert into imports (tenant_id, user_id, id, kind, platform, status, stored, leased_until)
values (@tenant_id, @user_id, @id, 'file', '', 'uploading', false, now() + make_interval(secs => @lease::int));

-- name: RenewUpload :execrows
update imports set leased_until = now() + make_interval(secs => @lease::int)
where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: InsertChunk :exec
insert into import_chunks (tenant_id, user_id, import_id, n, data) values (@tenant_id, @user_id, @import_id, @n, @data);

-- name: FinishUpload :execrows
update imports set status = 'queued', requested_platform = @platform, platform = @platform, size = @size, leased_until = null, version = 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: DeleteUpload :exec
delete from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading';

-- name: DeleteExpiredUpload :execrows
delete from imports where tenant_id = @tenant_id and user_id = @user_id and id = @id and status = 'uploading' and leased_until < now();
