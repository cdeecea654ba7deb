-- The platform overview (docs/adr/0026-platform-overview.md).

-- +goose Up
create table platform_sessions (
    hash       bytea primary key,
    issuer     text not null, -- issuer and subject identify the administrator
    subject    text not null,
    email      text not null,
    expires_at timestamptz not null
);
comment on table platform_sessions is 'Sessions of platform administrators. They belong to no tenant and give no access to its data';

-- tenants_failing_webhooks returns the tenants with webhooks that deliver nothing, and the number
-- of these. It runs as the owner, because row-level security hides webhooks without a scope.
-- +goose StatementBegin
create function tenants_failing_webhooks() returns table (tenant_id uuid, webhooks bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select w.tenant_id, count(*) from webhooks w
    where w.disabled or w.failing_since < now() - interval '15 minutes' group by w.tenant_id
$$;
-- +goose StatementEnd
revoke all on function tenants_failing_webhooks() from public;
