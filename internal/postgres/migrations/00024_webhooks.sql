-- Webhooks (docs/adr/0024-webhooks.md): audit records are delivered to the endpoints of their
-- tenant. The audit log is the outbox, so a webhook only needs a position in it.

-- +goose Up
create table webhooks (
    tenant_id       uuid not null references tenants on delete cascade,
    name            text not null,
    url             text not null,
    events          text[] not null,
    secret          text not null, -- to sign with, so it cannot be a hash
    previous_secret text not null default '', -- signs as well until previous_until
    previous_until  timestamptz not null default 'epoch',
    position        bigint not null, -- the record before the next event
    attempts        integer not null default 0, -- failed ones of the next event
    due_at          timestamptz not null default now(), -- of the next attempt, or the end of the claim of a job
    failing_since   timestamptz,
    disabled        boolean not null default false,
    skipped         bigint not null default 0, -- events that the endpoint refused
    message         text not null default '', -- of the last failure
    created_at      timestamptz not null default now(),
    primary key (tenant_id, name)
);
comment on table webhooks is 'Endpoints of each tenant, their signing secrets and their position in the audit log';
alter table webhooks enable row level security;
create policy scope on webhooks using (
    tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid and current_setting('mnemo.user', true) = '*');

-- webhooks_claim returns the webhooks that have records to deliver now, and claims them for a
-- time. It runs as the owner, because there is no scope yet.
-- +goose StatementBegin
create function webhooks_claim(p_most integer, p_lease interval) returns table (tenant_id uuid, name text)
language sql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
    update webhooks w set due_at = now() + p_lease from (
        select x.tenant_id, x.name from webhooks x join audit_chains c on c.tenant_id = x.tenant_id
        where not x.disabled and x.due_at <= now() and x.position < c.seq
        order by x.due_at limit p_most for update of x skip locked
    ) d
    where w.tenant_id = d.tenant_id and w.name = d.name returning w.tenant_id, w.name
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create function webhooks_failing(out failing bigint, out disabled bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*) filter (where not w.disabled and w.failing_since < now() - interval '15 minutes'),
        count(*) filter (where w.disabled) from webhooks w
$$;
-- +goose StatementEnd
revoke all on function webhooks_claim(integer, interval), webhooks_failing() from public;
