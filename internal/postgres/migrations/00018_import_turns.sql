-- Imports yield to those of other users that wait.

-- +goose Up
-- imports_wait returns whether an import of a user other than the transaction's has no
-- worker, although it could run: its last attempt did not fail, and its user has no
-- running import. It needs the rows of all users, so it runs as the owner.
-- +goose StatementBegin
create function imports_wait() returns boolean
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select exists (
        select from imports i
        where i.status in ('queued', 'running') and i.attempts = 0 and (i.leased_until is null or i.leased_until < now())
            and (i.tenant_id <> current_setting('mnemo.tenant')::uuid or i.user_id <> current_setting('mnemo.user')::bigint)
            and not exists (select from imports o
                where o.tenant_id = i.tenant_id and o.user_id = i.user_id and o.status = 'running' and o.leased_until >= now()))
$$;
-- +goose StatementEnd
revoke all on function imports_wait() from public;
