-- name: CountPendingExtractions :one
select count(*) from extractions where tenant_id = @tenant_id and user_id = @user_id and finished_at is null;

-- name: InsertExtraction :exec
insert into extractions (tenant_id, user_id, id, input) values (@tenant_id, @user_id, @id, @input::jsonb);

-- name: OpenExtraction :one
-- An unfinished extraction, and the location and generation that serve its user. The placement has a limit, as in Identify.
select x.input::text as input, coalesce(x.facts::text, '')::text as facts, x.stored, u.name as user_name,
    sqlc.embed(user_placements)
from extractions x
join users u on u.tenant_id = x.tenant_id and u.id = x.user_id and not u.purging
cross join lateral (select * from user_placements y where y.tenant_id = x.tenant_id and y.user_id = x.user_id limit 1) user_placements
where x.tenant_id = @tenant_id and x.user_id = @user_id and x.id = @id and x.finished_at is null;

-- name: SaveExtractedFacts :exec
update extractions set facts = @facts::jsonb
where tenant_id = @tenant_id and user_id = @user_id and id = @id and finished_at is null and facts is null;

-- name: AdvanceExtraction :execrows
-- Nothing if it was deleted or has ended, or the fact is stored already.
update extractions set stored = stored + 1
where tenant_id = @tenant_id and user_id = @user_id and id = @id and finished_at is null and stored = @index::integer;

-- name: FinishExtraction :exec
update extractions set finished_at = now(), failure = @failure, input = null, facts = null
where tenant_id = @tenant_id and user_id = @user_id and id = @id and finished_at is null;

-- name: ExtractionState :one
-- Of a user, or of any user of the tenant's applications.
select x.failure, x.created_at, x.finished_at from extractions x
join users u on u.tenant_id = x.tenant_id and u.id = x.user_id
where x.tenant_id = @tenant_id and x.id = @id
    and case when @of_applications::boolean then u.kind = 'application_user' and u.active else u.id = @user_id end;

-- name: DeleteExtractions :exec
delete from extractions where tenant_id = @tenant_id and user_id = @user_id;

-- name: DeletePendingExtractions :exec
-- Their facts may be memories that were deleted after the backup.
delete from extractions where tenant_id = @tenant_id and finished_at is null;

-- name: ExpireExtractions :execrows
delete from extractions x using (
    select o.user_id, o.id from extractions o
    where o.tenant_id = @tenant_id and o.finished_at < now() - @age::interval
    limit @batch::bigint for update skip locked
) old
where x.tenant_id = @tenant_id and x.user_id = old.user_id and x.id = old.id;
