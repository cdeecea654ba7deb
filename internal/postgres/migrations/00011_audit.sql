-- The audit log (docs/adr/0019-audit-log.md).
--
-- audit_append writes a record in the transaction of the change, without a lock. A
-- background process then seals it: it assigns the next number of the tenant's chain and
-- the hash, and moves the record from audit_pending to audit_records. The application role
-- can neither write pending records except through audit_append nor change sealed ones.

-- +goose Up
-- Records contain this pseudonym instead of the user. It is deleted with the user, so that
-- nothing links the remaining records to a person.
alter table users add column audit_id uuid not null default gen_random_uuid();

create table audit_pending (
    id          bigint generated always as identity primary key,
    tenant_id   uuid not null, -- not a reference: records outlive the tenant
    subject     uuid,          -- users.audit_id of the user whose data changed; null for the tenant
    at          timestamptz not null default clock_timestamp(),
    actor       text not null check (actor in ('user', 'operator', 'administrator', 'system')),
    via         text not null, -- credential, command or kind of job
    fingerprint text not null, -- of the credential
    app         text not null, -- client id of a connected app
    verb        text not null,
    objects     text[] not null
);
create index audit_pending_tenant on audit_pending (tenant_id, id);
comment on table audit_pending is 'Audit records that are not sealed yet';

create table audit_records (
    tenant_id   uuid not null,
    seq         bigint not null, -- in the chain of the tenant, from 1
    prev        bytea not null,  -- hash of the preceding record, which may be another user's
    hash        bytea not null,  -- of this record with prev
    subject     uuid,
    at          timestamptz not null,
    actor       text not null,
    via         text not null,
    fingerprint text not null,
    app         text not null,
    verb        text not null,
    objects     text[] not null,
    primary key (tenant_id, seq)
);
create index audit_records_subject on audit_records (tenant_id, subject, seq);
create index audit_records_age on audit_records (tenant_id, at);
comment on table audit_records is 'Sealed audit records: a hash chain per tenant. They contain ids and fingerprints, never content or secrets';

create table audit_chains (
    tenant_id uuid primary key, -- not a reference: the chain outlives the tenant
    seq       bigint not null default 0, -- of the last sealed record
    hash      bytea not null default ''
);
comment on table audit_chains is 'The end of each tenant''s chain of audit records';

-- A user sees the records of its own data. users has no policy.
-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['audit_pending', 'audit_records'] loop
        execute format('alter table %I enable row level security', t);
        execute format($p$
            create policy scope on %I using (
                tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
                and (current_setting('mnemo.user', true) = '*'
                     or subject = (select u.audit_id from users u
                        where u.tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
                        and u.id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint)))
        $p$, t);
    end loop;
end $$;
-- +goose StatementEnd
alter table audit_chains enable row level security;
create policy scope on audit_chains using (
    tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid and current_setting('mnemo.user', true) = '*');

-- audit_append writes the records of a change: one per 100 objects. It runs as the owner,
-- because sign-in and the operator write before there is a scope. A transaction with a
-- scope can only write records of its tenant and user. User 0 is the tenant.
-- +goose StatementBegin
create function audit_append(p_tenant uuid, p_user bigint, p_actor text, p_via text, p_fingerprint text, p_app text,
    p_verb text, p_objects text[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    scope_tenant text := coalesce(current_setting('mnemo.tenant', true), '');
    scope_user   text := coalesce(current_setting('mnemo.user', true), '');
begin
    if scope_tenant not in ('', p_tenant::text) or scope_user not in ('', '*', p_user::text) then
        raise exception 'audit record of another scope' using errcode = 'insufficient_privilege';
    end if;
    -- A loop is twice as fast as generate_series, and most changes have one object.
    for i in 0..greatest(cardinality(p_objects) - 1, 0) / 100 loop
        insert into audit_pending (tenant_id, subject, actor, via, fingerprint, app, verb, objects)
        values (p_tenant, (select u.audit_id from users u where u.tenant_id = p_tenant and u.id = p_user),
            p_actor, p_via, p_fingerprint, p_app, p_verb, p_objects[100 * i + 1:100 * i + 100]);
    end loop;
end $$;
-- +goose StatementEnd
revoke all on function audit_append(uuid, bigint, text, text, text, text, text, text[]) from public;

-- audit_tenants returns the tenants with pending records (sealed false) or with chains.
-- +goose StatementBegin
create function audit_tenants(p_sealed boolean) returns setof uuid
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select distinct tenant_id from audit_pending where not p_sealed
    union all select tenant_id from audit_chains where p_sealed
$$;
-- +goose StatementEnd
revoke all on function audit_tenants(boolean) from public;

-- audit_expire deletes a batch of the oldest records of the transaction's tenant, and its
-- chain if the tenant was deleted and no record remains. It runs as the owner: the
-- application role cannot delete records, and this function none of the last 30 days.
-- +goose StatementBegin
create function audit_expire(p_age interval, p_batch bigint) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    v_tenant uuid := nullif(current_setting('mnemo.tenant', true), '')::uuid;
    v_before timestamptz := now() - greatest(p_age, interval '30 days');
    v_last   bigint;
    v_count  bigint;
begin
    -- The chain stays without gaps: records up to the first one that is not old enough.
    select coalesce(min(seq) - 1, (select c.seq from audit_chains c where c.tenant_id = v_tenant)) into v_last
    from audit_records where tenant_id = v_tenant and at >= v_before;
    select least(v_last, min(seq) + p_batch - 1) into v_last from audit_records where tenant_id = v_tenant;
    delete from audit_records where tenant_id = v_tenant and seq <= v_last;
    get diagnostics v_count = row_count;
    delete from audit_chains c where c.tenant_id = v_tenant and c.tenant_id <> '00000000-0000-0000-0000-000000000000'
        and not exists (select from tenants t where t.id = v_tenant)
        and not exists (select from audit_records r where r.tenant_id = v_tenant)
        and not exists (select from audit_pending p where p.tenant_id = v_tenant);
    return v_count;
end $$;
-- +goose StatementEnd
revoke all on function audit_expire(interval, bigint) from public;

-- oauth_app returns the client id of the app that holds a secret; see oauth_holder.
-- +goose StatementBegin
create function oauth_app(p_hash bytea) returns text
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select g.client_id from oauth_secrets s
    join oauth_grants g on g.tenant_id = s.tenant_id and g.user_id = s.user_id and g.id = s.grant_id
    where s.hash = p_hash
$$;
-- +goose StatementEnd
revoke all on function oauth_app(bytea) from public;
