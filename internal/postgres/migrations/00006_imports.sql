-- Imports of files: the file in chunks until it is read, who reads it, and a
-- ledger with a row for every conversation in it.

-- +goose Up
alter table imports
    drop constraint imports_status_check,
    add constraint imports_status_check check (status in ('uploading', 'queued', 'running', 'done', 'failed')),
    add column kind text not null default 'online' check (kind in ('online', 'file')),
    add column unchanged bigint not null default 0, -- of those skipped
    add column indexed bigint not null default 0,   -- with nothing left to embed
    add column warnings jsonb not null default '[]',
    add column notes jsonb not null default '{}',   -- what its reader counted on the way
    add column failure text not null default '',    -- why the whole file failed
    add column asked text not null default '',      -- the platform the user named
    add column size bigint not null default 0,      -- of the file, bytes
    add column landed boolean not null default true, -- false: its conversations do not ask for room yet
    add column version bigint not null default 0,   -- raised whenever what is told of it changes
    add column attempts integer not null default 0, -- readers since something of it was stored
    add column worker uuid,                         -- who reads it, until
    add column leased_until timestamptz;
update imports set unchanged = skipped, indexed = total;
create index imports_files on imports (tenant_id, user_id, id) where kind = 'file';
create index imports_landing on imports (tenant_id) where not landed;
create index conversations_import on conversations (tenant_id, user_id, import_id);

create table import_chunks (
    tenant_id uuid not null,
    user_id   bigint not null,
    import_id uuid not null,
    n         integer not null, -- from 0; all but the last are of one size
    data      bytea not null,
    primary key (tenant_id, user_id, import_id, n),
    foreign key (tenant_id, user_id, import_id) references imports on delete cascade
);
-- Exports are compressed already.
alter table import_chunks alter column data set storage external;

create table import_ledger (
    tenant_id       uuid not null,
    user_id         bigint not null,
    import_id       uuid not null,
    ordinal         integer not null, -- its place in the file, from 0
    outcome         text not null check (outcome in ('imported', 'updated', 'unchanged', 'skipped', 'failed')),
    conversation_id uuid,             -- null when nothing of it is stored
    reason          text not null default '', -- why it was skipped or failed
    indexed         boolean not null default false,
    primary key (tenant_id, user_id, import_id, ordinal),
    foreign key (tenant_id, user_id, import_id) references imports on delete cascade
);
create index import_ledger_open on import_ledger (tenant_id, user_id, import_id) where not indexed;

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['import_chunks', 'import_ledger'] loop
        execute format('alter table %I enable row level security', t);
        execute format($p$
            create policy scope on %I using (
                tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
                and (current_setting('mnemo.user', true) = '*'
                     or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint))
        $p$, t);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
drop table import_ledger, import_chunks;
drop index conversations_import, imports_landing, imports_files;
delete from imports where status = 'uploading';
alter table imports
    drop column leased_until, drop column worker, drop column attempts, drop column version, drop column landed, drop column size,
    drop column asked, drop column failure, drop column notes, drop column warnings, drop column indexed,
    drop column unchanged, drop column kind,
    drop constraint imports_status_check,
    add constraint imports_status_check check (status in ('queued', 'running', 'done', 'failed'));
