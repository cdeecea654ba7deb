-- The audit log (docs/adr/0019-audit-log.md).

-- audit_append writes the records of a change: one per 100 objects. It runs as the owner, because sign-in and the
-- operator write before there is a scope. A transaction with a scope can only write records of its tenant and user.
-- User 0 is the tenant.
create or replace function audit_append(p_tenant uuid, p_user bigint, p_actor text, p_via text, p_fingerprint text, p_app text,
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
revoke all on function audit_append from public;

-- audit_tenants returns the tenants with pending records (sealed false) or with chains.
create or replace function audit_tenants(p_sealed boolean) returns setof uuid
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select distinct tenant_id from audit_pending where not p_sealed
    union all select tenant_id from audit_chains where p_sealed
$$;
revoke all on function audit_tenants from public;

-- audit_backlog returns the number of pending records and the age of the oldest in seconds. It runs as the owner,
-- because row-level security hides them without a scope.
create or replace function audit_backlog(out records bigint, out age float8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*), coalesce(extract(epoch from clock_timestamp() - min(at)), 0)::float8 from audit_pending
$$;
revoke all on function audit_backlog from public;

-- audit_expire deletes a batch of the oldest records of the transaction's tenant, and its chain if the tenant was
-- deleted and no record remains. It runs as the owner: the application role cannot delete records, and this function
-- none of the last 30 days.
create or replace function audit_expire(p_age interval, p_batch bigint) returns bigint
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
revoke all on function audit_expire from public;
