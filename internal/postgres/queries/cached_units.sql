-- name: CachedUnits :many
-- The cached units of a user, in order, or none if they are more than at_most.
select c.last_unit, c.units, c.hash, c.content from cached_units c
where c.tenant_id = @tenant_id and c.user_id = @user_id and c.kind = @kind and c.generation_id = @generation_id and c.format = @format
    and (select sum(a.units) from cached_units a where a.tenant_id = @tenant_id and a.user_id = @user_id and a.kind = @kind and a.generation_id = @generation_id
        and a.format = @format) <= @at_most::bigint
order by c.last_unit;

-- name: TryLockCachedUnits :one
-- Deletions of the user's units wait until the end of the transaction.
select pg_try_advisory_xact_lock(hashtextextended('mnemo.cached_units', @user_id::bigint));

-- name: StoreCachedUnits :exec
insert into cached_units (tenant_id, user_id, kind, generation_id, first_unit, last_unit, units, hash, format, content)
select @tenant_id::uuid, @user_id::bigint, @kind::smallint, @generation_id::smallint, min(i.id), max(i.id), count(*), bit_xor(hashint8extended(i.id, 0)), @format::smallint,
    @content::bytea
from unnest(@ids::bigint[]) i (id);

-- name: DeleteOtherCachedUnits :exec
-- Deletes what is in other formats, or has vectors of other generations.
delete from cached_units c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.kind = @kind
    and (c.format <> @format or c.generation_id <> @generation_id);

-- name: DeleteCachedGenerations :exec
delete from cached_units c where c.tenant_id = @tenant_id and c.generation_id <> @generation_id;
