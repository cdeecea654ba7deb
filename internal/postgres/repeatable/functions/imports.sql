-- upload_bytes returns the stored bytes of files: those of the transaction's user, of its tenant, and of all tenants.
-- The last sum needs all rows, so it runs as the owner; it has no arguments, so a transaction sees no other user's or
-- tenant's sum.
create or replace function upload_bytes(out user_bytes bigint, out tenant_bytes bigint, out total_bytes bigint)
language sql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
    select coalesce(sum(i.chunk_bytes) filter (where i.tenant_id = s.tenant_id and i.user_id = s.user_id), 0)::bigint,
        coalesce(sum(i.chunk_bytes) filter (where i.tenant_id = s.tenant_id), 0)::bigint,
        coalesce(sum(i.chunk_bytes), 0)::bigint
    from (select nullif(current_setting('mnemo.tenant', true), '')::uuid as tenant_id,
        nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint as user_id) s
    left join imports i on i.status in ('uploading', 'queued', 'running')
$$;
revoke all on function upload_bytes from public;

-- imports_wait returns whether an import of a user other than the transaction's has no worker, although it could run:
-- its last attempt did not fail, and its user has no running import. It needs the rows of all users, so it runs as the
-- owner.
create or replace function imports_wait() returns boolean
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select exists (
        select from imports i
        where i.status in ('queued', 'running') and i.attempts = 0 and (i.leased_until is null or i.leased_until < now())
            and (i.tenant_id <> current_setting('mnemo.tenant')::uuid or i.user_id <> current_setting('mnemo.user')::bigint)
            and not exists (select from imports o
                where o.tenant_id = i.tenant_id and o.user_id = i.user_id and o.status = 'running' and o.leased_until >= now()))
$$;
revoke all on function imports_wait from public;
