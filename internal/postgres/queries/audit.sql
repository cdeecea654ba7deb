-- name: AppendAudit :exec
select audit_append(@tenant_id, @user_id, @actor, @via, @fingerprint, @app, @verb, @objects::text[]);

-- name: AuditTenants :many
select tenant_id::text from audit_tenants(@sealed::boolean) as tenant_id;

-- name: EnsureAuditChain :exec
insert into audit_chains (tenant_id) values (@tenant_id) on conflict do nothing;

-- name: GetAuditChain :one
select seq, hash from audit_chains where tenant_id = @tenant_id;

-- name: LockAuditChain :one
select seq, hash from audit_chains where tenant_id = @tenant_id for update;

-- name: TryLockAuditChain :many
-- Nothing if another process holds the lock.
select seq, hash from audit_chains where tenant_id = @tenant_id for update skip locked;

-- name: PendingAudit :many
select id, coalesce(subject::text, '')::text as subject, at, actor, via, fingerprint, app, verb, objects
from audit_pending where tenant_id = @tenant_id order by id limit @batch;

-- name: SealAudit :exec
with gone as (
    delete from audit_pending p where p.tenant_id = @tenant_id and p.id = any(@ids::bigint[])
    returning p.id, p.tenant_id, p.subject, p.at, p.actor, p.via, p.fingerprint, p.app, p.verb, p.objects
), sealed as (
    select unnest(@ids::bigint[]) as id, unnest(@seqs::bigint[]) as seq, unnest(@prevs::bytea[]) as prev, unnest(@hashes::bytea[]) as hash
)
insert into audit_records (tenant_id, seq, prev, hash, subject, at, actor, via, fingerprint, app, verb, objects)
select g.tenant_id, s.seq, s.prev, s.hash, g.subject, g.at, g.actor, g.via, g.fingerprint, g.app, g.verb, g.objects
from gone g join sealed s on s.id = g.id;

-- name: ExtendAuditChain :exec
update audit_chains set seq = @seq, hash = @hash where tenant_id = @tenant_id;

-- name: ListAudit :many
-- Row-level security restricts it to the user, if the transaction has one.
select seq, prev, hash, coalesce(subject::text, '')::text as subject, at, actor, via, fingerprint, app, verb, objects
from audit_records where tenant_id = @tenant_id and seq > @after order by seq limit @page;

-- name: ListRecentAudit :many
-- Newest first. Row-level security restricts it to the user.
select seq, coalesce(subject::text, '')::text as subject, at, actor, via, fingerprint, app, verb, objects
from audit_records where tenant_id = @tenant_id and seq < @before order by seq desc limit @page;

-- name: ExpireAudit :one
select audit_expire(@age, @batch) as expired;
