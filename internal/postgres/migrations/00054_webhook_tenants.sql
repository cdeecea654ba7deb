-- Metrics of webhooks (docs/adr/0024-webhooks.md).

-- +goose Up

-- webhooks_failing no longer counts those of retained and purging tenants, which nobody repairs.
-- +goose StatementBegin
create or replace function webhooks_failing(out failing bigint, out disabled bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*) filter (where not w.disabled and w.failing_since < now() - interval '15 minutes'),
        count(*) filter (where w.disabled)
    from webhooks w join tenants t on t.id = w.tenant_id where t.state = 'active'
$$;
-- +goose StatementEnd

-- webhook_tenants counts the tenants with webhooks that are not disabled: those with a failing one, and the others. It runs as
-- the owner, because row-level security hides webhooks without a scope.
-- +goose StatementBegin
create or replace function webhook_tenants(out failing bigint, out delivering bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*) filter (where x.failing), count(*) filter (where not x.failing) from (
        select coalesce(bool_or(w.failing_since < now() - interval '15 minutes'), false) as failing
        from webhooks w join tenants t on t.id = w.tenant_id where t.state = 'active' and not w.disabled group by w.tenant_id
    ) x
$$;
-- +goose StatementEnd
revoke all on function webhook_tenants() from public;
