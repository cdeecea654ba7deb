-- Application keys (docs/adr/0022-application-users.md).
--
-- An application has a row in users, which holds its keys (tokens) like those of a user, with
-- the same revocation and erasure records. It owns no data. The users that it acts for are rows
-- of a kind of their own: the operator does not list them, and their names cannot be those of
-- other users.

-- +goose Up
alter table users add column kind text not null default 'user' check (kind in ('user', 'application', 'application_user'));
comment on column users.kind is 'user: in the Tenant resource or of an identity provider; application: holds the keys of an application; application_user: created by an application';
create index users_managed on users (tenant_id) where kind <> 'application_user';

create table applications (
    tenant_id           uuid not null,
    user_id             bigint not null,
    scopes              text[] not null,
    allowed_origins     text[] not null default '{}',
    requests_per_minute bigint not null,
    primary key (tenant_id, user_id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
comment on table applications is 'Settings of the applications of each tenant, copied from its resource';

create unlogged table application_rate_windows (
    user_id bigint primary key references users (id) on delete cascade,
    minute  timestamptz not null,
    used    bigint not null, -- permits taken in this minute
    granted bigint not null  -- permits granted to the last caller
) with (fillfactor = 50);
comment on table application_rate_windows is 'rate_windows for each application with a rate of its own';

-- Counted, because a tenant may have a hundred thousand.
alter table usage add column application_users bigint not null default 0 check (application_users >= 0);

-- +goose StatementBegin
create function count_application_users() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if tg_op = 'INSERT' then
        update usage set application_users = application_users + 1 where tenant_id = new.tenant_id;
    else
        -- The rows of a tenant that is being purged are deleted all at once.
        update usage s set application_users = application_users - 1
        from tenants t where s.tenant_id = old.tenant_id and t.id = old.tenant_id and t.state <> 'purging';
    end if;
    return null;
end $$;
-- +goose StatementEnd
revoke all on function count_application_users() from public;
create trigger count_insert after insert on users for each row
    when (new.kind = 'application_user' and new.active) execute function count_application_users();
create trigger count_end after update on users for each row
    when (old.kind = 'application_user' and old.active and not new.active) execute function count_application_users();
create trigger count_delete after delete on users for each row
    when (old.kind = 'application_user' and old.active) execute function count_application_users();

alter table audit_pending drop constraint audit_pending_actor_check;
alter table audit_pending add constraint audit_pending_actor_check
    check (actor in ('user', 'application', 'operator', 'administrator', 'system'));
