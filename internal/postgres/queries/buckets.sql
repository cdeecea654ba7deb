-- name: ListBuckets :many
select id, name, description, is_default, memories from buckets
where tenant_id = @tenant_id and user_id = @user_id
order by is_default desc, lower(name), id;

-- name: EnsureDefaultBucket :exec
-- Does nothing for a user who has been or is being erased.
insert into buckets (tenant_id, user_id, id, name, name_key, is_default) overriding system value
select @tenant_id, @user_id, greatest(n.id, (select max(b.id) + 1 from buckets b where b.tenant_id = @tenant_id and b.user_id = @user_id)),
    @name, @name_key, true from (select nextval(pg_get_serial_sequence('buckets', 'id')) as id) n
where exists (select from users x where x.tenant_id = @tenant_id and x.id = @user_id and not x.purging)
on conflict do nothing;

-- name: LockDefaultBucket :exec
-- Creations wait for each other, so that they can count.
select from buckets where tenant_id = @tenant_id and user_id = @user_id and is_default for no key update;

-- name: CountBuckets :one
select count(*) from buckets where tenant_id = @tenant_id and user_id = @user_id;

-- name: InsertBucket :one
-- The next id, or one above the highest restored id.
insert into buckets (tenant_id, user_id, id, name, name_key, description) overriding system value
select @tenant_id, @user_id, greatest(n.id, (select max(b.id) + 1 from buckets b where b.tenant_id = @tenant_id and b.user_id = @user_id)),
    @name, @name_key, @description from (select nextval(pg_get_serial_sequence('buckets', 'id')) as id) n
on conflict do nothing
returning id;

-- name: HasBucket :one
select exists (select from buckets where tenant_id = @tenant_id and user_id = @user_id and id = @id);

-- name: AddBucketMemories :exec
update buckets b set memories = b.memories + d.delta
from (select unnest(@ids::bigint[]) as id, unnest(@deltas::bigint[]) as delta) d
where b.tenant_id = @tenant_id and b.user_id = @user_id and b.id = d.id;

-- name: FindBucket :one
-- By id, by name, or by both.
select id, name, is_default from buckets where tenant_id = @tenant_id and user_id = @user_id
    and (@id::bigint = 0 or id = @id) and (@name_key::text = '' or name_key = @name_key);

-- name: LockBucket :one
select name, description, is_default from buckets where tenant_id = @tenant_id and user_id = @user_id and id = @id for update;

-- name: DefaultBucket :one
select id from buckets where tenant_id = @tenant_id and user_id = @user_id and is_default;

-- name: UpdateBucket :exec
update buckets set name = coalesce(sqlc.narg('name'), name), name_key = coalesce(sqlc.narg('name_key'), name_key),
    description = coalesce(sqlc.narg('description'), description)
where tenant_id = @tenant_id and user_id = @user_id and id = @id;

-- name: DeleteBucket :exec
delete from buckets where tenant_id = @tenant_id and user_id = @user_id and id = @id;
