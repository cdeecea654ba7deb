-- count_application_users counts the active users of applications of each tenant.
create or replace function count_application_users() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
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
revoke all on function count_application_users from public;

-- usage_begin and usage_close keep the values of usage at the end of each day: the first change on a later day stores
-- those that were current until then.
create or replace function usage_begin() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into usage_days (tenant_id, day, storage, embedded) values (new.tenant_id, new.metered_on, new.storage, new.embedded_tokens)
    on conflict (tenant_id, day) do update set storage = excluded.storage, embedded = excluded.embedded;
    return null;
end $$;
revoke all on function usage_begin from public;

create or replace function usage_close() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
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
revoke all on function usage_close from public;
