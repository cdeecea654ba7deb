-- name: CachedUnits :one
-- The stored units of a user, unless the user has too_many units or more.
select c.last_unit, c.units, c.hash, c.content from cached_units c
where c.tenant_id = @tenant_id and c.user_id = @user_id and c.kind = @kind and c.generation_id = @generation_id and c.format = @format
    and (select count(*) from (select from units u where u.tenant_id = @tenant_id and u.user_id = @user_id and u.kind = @kind and u.active limit @too_many::bigint) n)
        < @too_many::bigint
limit 1;

-- name: TryLockCachedUnits :one
-- Deletions of the user's units wait until the end of the transaction.
select pg_try_advisory_xact_lock(hashtextextended('mnemo.cached_units', @user_id::bigint));

-- name: StoreCachedUnits :exec
insert into cached_units (tenant_id, user_id, kind, generation_id, first_unit, last_unit, units, hash, format, content)
select @tenant_id::uuid, @user_id::bigint, @kind::smallint, @generation_id::smallint, min(i.id), max(i.id), count(*), bit_xor(hashint8extended(i.id, 0)), @format::smallint,
    @content::bytea
from unnest(@ids::bigint[]) i (id);

-- name: DeleteCachedUnits :exec
delete from cached_units c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.kind = @kind;

-- name: DeleteCachedGenerations :exec
delete from cached_units c where c.tenant_id = @tenant_id and c.generation_id <> @generation_id;
