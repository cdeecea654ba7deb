-- Erasures and revocations, for the erasure ledger (docs/adr/0015-erasure-ledger.md).
--
-- Triggers record every erasure in the transaction that erases. `mnemo erasures
-- record` copies the records to the ledger, a file outside the database, and
-- deletes them here. A ledger that is ahead of the database means that the
-- database was restored from a backup; the missing erasures are then repeated.
--
-- A tenant or user that is being purged has a record of its own, so its rows
-- are not recorded one by one. Without a ledger nothing is recorded.

-- +goose Up
create table erasures (
    id        uuid primary key default gen_random_uuid(),
    kind      text not null check (kind in ('tenant', 'user', 'access', 'account', 'conversation', 'memory', 'bucket',
                                            'token', 'password', 'session', 'grant', 'secret')),
    tenant_id uuid not null, -- not a reference: the record outlives the tenant
    user_id   bigint not null default 0, -- 0 if the kind or the objects identify the rows
    objects   text[] not null default '{}', -- ids, or hashes in hexadecimal
    until     timestamptz, -- when a revoked token expires
    at        timestamptz not null default clock_timestamp()
);
create index erasures_at on erasures (at);
comment on table erasures is 'Erasures and revocations that are not in the erasure ledger yet';

create table erasure_ledger (
    ledger   uuid,                      -- the ledger in use; null before the first
    position bigint not null default 0, -- the last entry of the ledger that this database reflects
    database text not null default ''   -- identifies this database; another value means that it was restored
);
create unique index on erasure_ledger ((true)); -- one row
insert into erasure_ledger default values;
comment on table erasure_ledger is 'The erasure ledger that was last applied to this database';

-- +goose StatementBegin
create function record_tenant_erasure() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into erasures (kind, tenant_id) select 'tenant', old.id from erasure_ledger where ledger is not null;
    return null;
end $$;
-- +goose StatementEnd
create trigger record_purge after update on tenants for each row
    when (new.state = 'purging' and old.state <> 'purging') execute function record_tenant_erasure();
create trigger record_delete after delete on tenants for each row
    when (old.state <> 'purging') execute function record_tenant_erasure();

-- +goose StatementBegin
create function record_user_erasure() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
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
-- +goose StatementEnd
create trigger record_purge after update on users for each row
    when (new.purging and not old.purging) execute function record_user_erasure('user');
create trigger record_delete after delete on users for each row
    when (not old.purging) execute function record_user_erasure('user');
create trigger record_deactivation after update on users for each row
    when (old.active and not new.active and not new.purging) execute function record_user_erasure('access');
create trigger record_password after update on users for each row
    when (old.password_hash is distinct from new.password_hash and old.password_hash is not null)
    execute function record_user_erasure('password');

-- record_object_erasures records deleted memories, conversations or buckets. An
-- account deletion is recorded as a whole and sets mnemo.erasing.
-- +goose StatementBegin
create function record_object_erasures() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if current_setting('mnemo.erasing', true) = 'account' then
        return null;
    end if;
    insert into erasures (kind, tenant_id, user_id, objects)
    select tg_argv[0], d.tenant_id, d.user_id, array_agg(d.id::text)
    from deleted d
    join erasure_ledger l on l.ledger is not null
    join tenants t on t.id = d.tenant_id and t.state <> 'purging'
    join users u on u.tenant_id = d.tenant_id and u.id = d.user_id and not u.purging
    group by d.tenant_id, d.user_id;
    return null;
end $$;
-- +goose StatementEnd
create trigger record_delete after delete on memories referencing old table as deleted
    for each statement execute function record_object_erasures('memory');
create trigger record_delete after delete on conversations referencing old table as deleted
    for each statement execute function record_object_erasures('conversation');
create trigger record_delete after delete on buckets referencing old table as deleted
    for each statement execute function record_object_erasures('bucket');

-- +goose StatementBegin
create function record_token_revocation() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into erasures (kind, tenant_id, user_id, objects, until)
    select 'token', old.tenant_id, old.user_id, array[encode(old.hash, 'hex')], new.expires_at
    from erasure_ledger where ledger is not null;
    return null;
end $$;
-- +goose StatementEnd
create trigger record_revocation after update on tokens for each row
    when (new.expires_at is not null and new.expires_at is distinct from old.expires_at)
    execute function record_token_revocation();

-- record_access_end records a session that was ended, a grant that was revoked or a
-- refresh token that was used. Expired ones need no record.
-- +goose StatementBegin
create function record_access_end() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
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
-- +goose StatementEnd
create trigger record_delete after delete on sessions for each row execute function record_access_end('session');
create trigger record_delete after delete on oauth_grants for each row execute function record_access_end('grant');
create trigger record_use after update on oauth_secrets for each row
    when (new.used and not old.used) execute function record_access_end('secret');

revoke all on function record_tenant_erasure(), record_user_erasure(), record_object_erasures(), record_token_revocation(),
    record_access_end() from public;
