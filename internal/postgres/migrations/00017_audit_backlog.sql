-- The metric of audit records that are not sealed yet.

-- +goose Up
-- audit_backlog returns the number of pending records and the age of the oldest in seconds.
-- It runs as the owner, because row-level security hides them without a scope.
-- +goose StatementBegin
create function audit_backlog(out records bigint, out age float8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*), coalesce(extract(epoch from clock_timestamp() - min(at)), 0)::float8 from audit_pending
$$;
-- +goose StatementEnd
revoke all on function audit_backlog() from public;
