-- The units of users who search, in the format of the cache of API servers (docs/adr/0036-stored-cache.md). The table is not logged: after a crash or a
-- failover it is empty.

-- +goose Up
create unlogged table cached_units (
    tenant_id     uuid not null,
    user_id       bigint not null,
    kind          smallint not null, -- of the units
    generation_id smallint not null, -- of their vectors
    first_unit    bigint not null,   -- the lowest and the highest id
    last_unit     bigint not null,
    units         integer not null,  -- their number
    hash          bigint not null,   -- of their ids
    format        smallint not null, -- of the content
    content       bytea not null,    -- ids, vectors, words, and texts of short memories
    primary key (tenant_id, user_id, kind, generation_id)
);
comment on table cached_units is 'Vectors, words and texts of up to 2,001 units of a user in the format of the cache of API servers. Deleted with any of the units';
alter table cached_units alter column content set storage external; -- vectors do not compress

alter table cached_units enable row level security;
create policy scope on cached_units using (
    tenant_id = (select nullif(current_setting('mnemo.tenant', true), '')::uuid)
    and ((select current_setting('mnemo.user', true) = '*')
        or user_id = (select nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint)));

-- delete_cached runs as the owner and for each deletion of units, also by paths and releases that do not know the table. API servers store
-- units while they hold the lock exclusively, and only those that exist. So either they see a deletion, or it sees what they stored.
-- +goose StatementBegin
create function delete_cached() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    v_user record;
begin
    for v_user in select d.tenant_id as tenant, d.user_id as id, d.kind, array_agg(d.id) as deleted from deleted d group by d.tenant_id, d.user_id, d.kind loop
        perform pg_advisory_xact_lock_shared(hashtextextended('mnemo.cached_units', v_user.id));
        delete from cached_units c where c.tenant_id = v_user.tenant and c.user_id = v_user.id and c.kind = v_user.kind
            and exists (select from unnest(v_user.deleted) w (id) where w.id between c.first_unit and c.last_unit);
    end loop;
    return null;
end $$;
-- +goose StatementEnd
revoke all on function delete_cached() from public;
create trigger delete_cached after delete on units referencing old table as deleted
    for each statement execute function delete_cached();
