-- name: ReadErasureLedger :one
-- The identity changes when the database is restored from a dump: the server's
-- identifier, the table's oid, and a value that the administrator sets after
-- other kinds of restores.
select coalesce(l.ledger::text, '')::text as ledger, l.position, l.database,
    (c.system_identifier::text || '.' || l.tableoid::bigint::text || '.' || @restore_id::text)::text as identity
from erasure_ledger l, pg_control_system() c;

-- name: StopErasures :exec
-- The database stays identified, which tells it from one without any ledger.
with removed as (delete from erasures)
update erasure_ledger set ledger = null, position = 0, database = @database;

-- name: CloseErasureLedger :execrows
-- Changes nothing if the same restored database was closed before.
update erasure_ledger set database = 'closed ' || @identity::text where database <> 'closed ' || @identity::text;

-- name: SetErasureLedger :exec
update erasure_ledger set ledger = @ledger::uuid, position = @position, database = @database;

-- name: AdvanceErasureLedger :execrows
update erasure_ledger set position = @position where ledger = @ledger::uuid and position = @before;

-- name: PendingErasures :many
select id, kind, tenant_id, user_id, objects, until, at from erasures order by at limit @batch;

-- name: KnownErasures :many
select id from erasures where id = any(@ids::uuid[]);

-- name: DeleteErasures :execrows
delete from erasures where id = any(@ids::uuid[]);

-- name: ErasureLag :one
select extract(epoch from coalesce(now() - min(at), interval '0'))::float8 as seconds from erasures;

-- name: RecordAccountErasure :exec
insert into erasures (kind, tenant_id, user_id, objects, until)
select 'account', @tenant_id::uuid, @user_id::bigint, @objects::text[], @up_to::timestamptz from erasure_ledger where ledger is not null;

-- name: SkipObjectErasures :exec
-- Until the end of the transaction, whose deletions have a record as a whole.
select set_config('mnemo.erasing', 'account', true);

-- name: SkipIDs :exec
-- Ids that were assigned after the backup must not be assigned again: the index
-- and the ledger may contain them.
select setval('unit_ids', nextval('unit_ids') + 1000000000), setval('placement_ids', nextval('placement_ids') + 1000000),
    setval(pg_get_serial_sequence('users', 'id'), nextval(pg_get_serial_sequence('users', 'id')) + 1000000),
    setval(pg_get_serial_sequence('buckets', 'id'), nextval(pg_get_serial_sequence('buckets', 'id')) + 1000000);

-- name: AllTenants :many
select id from tenants order by id;

-- name: FailUnfinishedImports :one
-- Their files may contain conversations that were deleted after the backup. Returns their number.
with failed as (
    update imports i set status = 'failed', stored = true, failure = @failure, finished_at = now(), worker = null, leased_until = null,
        chunk_bytes = 0, version = version + 1
    where i.tenant_id = @tenant_id and i.status in ('uploading', 'queued', 'running')
    returning i.tenant_id, i.user_id, i.id
), chunks as (
    delete from import_chunks k using failed f where k.tenant_id = f.tenant_id and k.user_id = f.user_id and k.import_id = f.id
)
select count(*) from failed;

-- name: RepeatTenantErasure :execrows
update tenants set state = 'purging', deletion_policy = 'Delete', retired_at = coalesce(retired_at, now()), updated_at = now()
where id = @id and state <> 'purging';

-- name: RepeatUserErasure :execrows
update users set active = false, purging = true, name = 'purging-' || id where tenant_id = @tenant_id and id = @id and not purging;

-- name: RepeatAccountErasure :exec
-- Deletes what BeginPurge deleted. Memories that are stored later have greater numbers than the erased ones.
with ended as (
    delete from imports i where i.tenant_id = @tenant_id and i.user_id = @user_id and i.started_at <= @up_to
        and (i.finished_at is null or i.finished_at > @up_to or not i.stored)
), extracted as (
    delete from extractions x where x.tenant_id = @tenant_id and x.user_id = @user_id and x.created_at <= @up_to
), revoked as (
    delete from user_tokens t where t.tenant_id = @tenant_id and t.user_id = @user_id and t.created_at <= @up_to
)
update users u set memory_seq = greatest(u.memory_seq, @memory::bigint) where u.tenant_id = @tenant_id and u.id = @user_id;

-- name: RepeatDeactivation :exec
update users set active = false where tenant_id = @tenant_id and id = @id and active;

-- name: RepeatTokenRevocation :exec
update tokens set expires_at = @until where hash = any(@hashes::bytea[]) and (expires_at is null or expires_at > @until);

-- name: RepeatPasswordChange :exec
-- The operator then issues a password, also to a user who had replaced it.
update users set password_hash = null, password_replaced = false
where tenant_id = @tenant_id and id = @id and password_hash = any(@hashes::bytea[]);

-- name: RepeatSignOut :exec
delete from sessions where hash = any(@hashes::bytea[]);

-- name: RepeatGrantRevocation :exec
delete from oauth_grants where tenant_id = @tenant_id and user_id = @user_id and id = any(@ids::uuid[]);

-- name: RepeatSecretUse :exec
update oauth_secrets set used = true where tenant_id = @tenant_id and user_id = @user_id and hash = any(@hashes::bytea[]);
