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

-- require_quota fails (SQLSTATE MN002) if that many more memories or bytes of storage exceed a quota. The error names the
-- quota as its constraint, and its detail is the limit and what is used. Numbers that are not positive exceed none.
create or replace function require_quota(tenant uuid, owner bigint, more_memories bigint, more_storage bigint)
returns void language plpgsql as $$
declare
    refused record;
begin
    select r.resource, r.hard, r.used into refused
    from usage u join quotas q on q.tenant_id = u.tenant_id left join users x on x.tenant_id = u.tenant_id and x.id = owner
    cross join lateral (values
        (1, 'storage', more_storage, u.storage, q.storage),
        (2, 'memory', more_memories, u.memories, q.memories),
        (3, 'per-user memory', more_memories, x.memories, q.user_memories)
    ) r (n, resource, more, used, hard)
    where u.tenant_id = tenant and r.more > 0 and r.used + r.more > r.hard
    order by r.n limit 1;
    if found then
        raise exception 'quota exceeded' using errcode = 'MN002', constraint = refused.resource, detail = refused.hard || ' ' || refused.used;
    end if;
end $$;
revoke all on function require_quota from public;
