-- name: CachedUnits :one
-- The number of a user's units, at most too_many, and the stored ones, unless there are too_many.
select n.units::bigint as total, coalesce(c.last_unit, 0)::bigint as last_unit, coalesce(c.units, 0)::int as units, coalesce(c.hash, 0)::bigint as hash, c.content
from (select count(*) as units from (select from units u where u.tenant_id = @tenant_id and u.user_id = @user_id and u.kind = @kind and u.active limit @too_many::bigint) l) n
left join lateral (
    select s.last_unit, s.units, s.hash, s.content from cached_units s
    where s.tenant_id = @tenant_id and s.user_id = @user_id and s.kind = @kind and s.generation_id = @generation_id and s.format = @format and n.units < @too_many::bigint
    limit 1
) c on true;

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
