-- Triggers record every erasure and revocation in the transaction that erases, for the erasure ledger
-- (docs/adr/0015-erasure-ledger.md). `mnemo erasures record` copies the records to the ledger, a file outside the
-- database, and deletes them here. A ledger that is ahead of the database means that the database was restored from a
-- backup; the missing erasures are then repeated.
--
-- A tenant or user that is being purged has a record of its own, so its rows are not recorded one by one. Without a
-- ledger nothing is recorded.

create or replace function record_tenant_erasure() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into erasures (kind, tenant_id) select 'tenant', old.id from erasure_ledger where ledger is not null;
    return null;
end $$;
revoke all on function record_tenant_erasure from public;

create or replace function record_user_erasure() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if tg_argv[0] = 'password' then
        insert into erasures (kind, tenant_id, user_id, objects)
        select 'password', old.tenant_id, old.id, array[encode(old.password_hash, 'hex')] from erasure_ledger where ledger is not null;
    else
        insert into erasures (kind, tenant_id, user_id)
        select tg_argv[0], t.id, old.id from tenants t, erasure_ledger l
        where t.id = old.tenant_id and t.state <> 'purging' and l.ledger is not null;
    end if;
    return null;
end $$;
revoke all on function record_user_erasure from public;

-- record_object_erasures records deleted memories, conversations or buckets. mnemo.erasing is 'account' for the
-- deletion of an account, which is recorded as a whole, and 'undoable' for a deletion that can be undone, which is
-- recorded when it becomes final.
create or replace function record_object_erasures() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if current_setting('mnemo.erasing', true) in ('account', 'undoable') or not exists (select from erasure_ledger where ledger is not null) then
        return null;
    end if;
    insert into erasures (kind, tenant_id, user_id, objects)
    select tg_argv[0], d.tenant_id, d.user_id, d.objects
    from (select tenant_id, user_id, array_agg(id::text) as objects from deleted group by tenant_id, user_id) d
    join tenants t on t.id = d.tenant_id and t.state <> 'purging'
    join users u on u.tenant_id = d.tenant_id and u.id = d.user_id and not u.purging;
    return null;
end $$;
revoke all on function record_object_erasures from public;

-- record_final_deletions records deletions that can no longer be undone. mnemo.erasing is 'undo' while the rows are
-- restored.
create or replace function record_final_deletions() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if current_setting('mnemo.erasing', true) in ('account', 'undo') then
        return null;
    end if;
    insert into erasures (kind, tenant_id, user_id, objects)
    select d.kind, d.tenant_id, d.user_id, array_agg(d.object::text)
    from deleted d
    join erasure_ledger l on l.ledger is not null
    join tenants t on t.id = d.tenant_id and t.state <> 'purging'
    join users u on u.tenant_id = d.tenant_id and u.id = d.user_id and not u.purging
    group by d.kind, d.tenant_id, d.user_id;
    return null;
end $$;
revoke all on function record_final_deletions from public;

create or replace function record_token_revocation() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into erasures (kind, tenant_id, user_id, objects, until)
    select 'token', old.tenant_id, old.user_id, array[encode(old.hash, 'hex')], new.expires_at
    from erasure_ledger where ledger is not null;
    return null;
end $$;
revoke all on function record_token_revocation from public;

-- record_access_end records a session that was ended, a grant that was revoked or a refresh token that was used.
-- Expired ones need no record.
create or replace function record_access_end() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if tg_argv[0] = 'grant' then
        insert into erasures (kind, tenant_id, user_id, objects)
        select 'grant', old.tenant_id, old.user_id, array[old.id::text] from erasure_ledger where ledger is not null;
    elsif old.expires_at > now() then
        insert into erasures (kind, tenant_id, user_id, objects)
        select tg_argv[0], old.tenant_id, old.user_id, array[encode(old.hash, 'hex')] from erasure_ledger where ledger is not null;
    end if;
    return null;
end $$;
revoke all on function record_access_end from public;
