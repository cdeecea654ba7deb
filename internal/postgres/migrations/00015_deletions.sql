-- Deletions that can be undone: for 10 seconds, the rows of a memory or conversation that
-- was deleted in the dashboard are kept here. A job deletes them, and nothing else reads them.

-- +goose Up
create table deletions (
    tenant_id  uuid not null,
    user_id    bigint not null,
    id         uuid not null, -- of the deletion: an undo restores all of its objects
    object     uuid not null, -- the memory or conversation
    kind       text not null check (kind in ('memory', 'conversation')),
    content    jsonb not null, -- its rows, by table
    expires_at timestamptz not null,
    primary key (tenant_id, user_id, id, object),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index deletions_expiry on deletions (tenant_id, expires_at);
comment on table deletions is 'Rows of deleted memories and conversations while the deletion can be undone';
alter table deletions enable row level security;
create policy scope on deletions using (
    tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
    and (current_setting('mnemo.user', true) = '*'
         or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint));

-- A deletion is an erasure when it becomes final. While it can be undone, mnemo.erasing is
-- 'undoable' for the deleted rows, and 'undo' when they are restored.
-- +goose StatementBegin
create or replace function record_object_erasures() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if current_setting('mnemo.erasing', true) in ('account', 'undoable') then
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

-- +goose StatementBegin
create function record_final_deletions() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
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
-- +goose StatementEnd
revoke all on function record_final_deletions() from public;
create trigger record_delete after delete on deletions referencing old table as deleted
    for each statement execute function record_final_deletions();
