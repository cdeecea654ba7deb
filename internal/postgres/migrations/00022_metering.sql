-- Usage metering for billing (docs/adr/0023-metering.md).

-- +goose Up
create table usage_days (
    tenant_id uuid not null, -- not a reference: the usage outlives the tenant
    day       date not null, -- in UTC
    requests  bigint not null default 0,
    changes   bigint not null default 0,
    storage   bigint, -- bytes at the end of the day; null if the row in usage did not change on this day
    embedded  bigint, -- tokens since the tenant was created, at the end of the day; null like storage
    primary key (tenant_id, day)
);
comment on table usage_days is 'Usage of each tenant and day, without users';

create table usage_reports (
    id          uuid primary key, -- of a journal of requests
    reported_at timestamptz not null default now()
);
create index usage_reports_age on usage_reports (reported_at);
comment on table usage_reports is 'Journals that are counted in usage_days, so that none is counted twice';

-- What is counted after a day was exported belongs to the next day.
create table usage_exports (
    singleton boolean primary key default true check (singleton),
    closed    date not null -- the latest exported day
);
comment on table usage_exports is 'The latest day whose usage was exported and does not change any more';
insert into usage_exports (closed) values ('epoch');

alter table usage add column embedded_tokens bigint not null default 0;
alter table usage add column metered_on date not null default (now() at time zone 'utc')::date;
comment on column usage.metered_on is 'The day in UTC of the last change of storage or embedded_tokens';

-- usage_begin and usage_close keep the values of usage at the end of each day: the first change
-- on a later day stores those that were current until then.
-- +goose StatementBegin
create function usage_begin() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into usage_days (tenant_id, day, storage, embedded) values (new.tenant_id, new.metered_on, new.storage, new.embedded_tokens)
    on conflict (tenant_id, day) do update set storage = excluded.storage, embedded = excluded.embedded;
    return null;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create function usage_close() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
    v_today date := (clock_timestamp() at time zone 'utc')::date;
begin
    if old.metered_on < v_today then
        insert into usage_days (tenant_id, day, storage, embedded) values (old.tenant_id, old.metered_on, old.storage, old.embedded_tokens)
        on conflict (tenant_id, day) do update set storage = excluded.storage, embedded = excluded.embedded;
    end if;
    if tg_op = 'DELETE' then
        insert into usage_days (tenant_id, day, storage, embedded) values (old.tenant_id, v_today, 0, old.embedded_tokens)
        on conflict (tenant_id, day) do update set storage = excluded.storage, embedded = excluded.embedded;
        return old;
    end if;
    new.metered_on := v_today;
    return new;
end $$;
-- +goose StatementEnd
revoke all on function usage_begin(), usage_close() from public;
create trigger begin_metering after insert on usage for each row execute function usage_begin();
create trigger close_day before update on usage for each row
    when (old.metered_on < (clock_timestamp() at time zone 'utc')::date
        and (old.storage, old.embedded_tokens) is distinct from (new.storage, new.embedded_tokens))
    execute function usage_close();
create trigger end_metering before delete on usage for each row execute function usage_close();
insert into usage_days (tenant_id, day, storage, embedded) select tenant_id, metered_on, storage, 0 from usage;
