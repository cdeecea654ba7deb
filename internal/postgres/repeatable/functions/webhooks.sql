-- These run as the owner, because row-level security hides webhooks without a scope. Those of retained and purging
-- tenants are not counted: nobody repairs them.

-- webhooks_claim returns the webhooks that have records to deliver now, and claims them for a time.
create or replace function webhooks_claim(p_most integer, p_lease interval) returns table (tenant_id uuid, name text)
language sql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
    update webhooks w set due_at = now() + p_lease from (
        select x.tenant_id, x.name from webhooks x join audit_chains c on c.tenant_id = x.tenant_id
        where not x.disabled and x.due_at <= now() and x.position < c.seq
        order by x.due_at limit p_most for update of x skip locked
    ) d
    where w.tenant_id = d.tenant_id and w.name = d.name returning w.tenant_id, w.name
$$;
revoke all on function webhooks_claim from public;

create or replace function webhooks_failing(out failing bigint, out disabled bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*) filter (where not w.disabled and w.failing_since < now() - interval '15 minutes'),
        count(*) filter (where w.disabled)
    from webhooks w join tenants t on t.id = w.tenant_id where t.state = 'active'
$$;
revoke all on function webhooks_failing from public;

-- webhook_tenants counts the tenants with webhooks that are not disabled: those with a failing one, and the others.
create or replace function webhook_tenants(out failing bigint, out delivering bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select count(*) filter (where x.failing), count(*) filter (where not x.failing) from (
        select coalesce(bool_or(w.failing_since < now() - interval '15 minutes'), false) as failing
        from webhooks w join tenants t on t.id = w.tenant_id where t.state = 'active' and not w.disabled group by w.tenant_id
    ) x
$$;
revoke all on function webhook_tenants from public;

-- tenants_failing_webhooks returns the tenants with webhooks that deliver nothing, and the number of these.
create or replace function tenants_failing_webhooks() returns table (tenant_id uuid, webhooks bigint)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select w.tenant_id, count(*) from webhooks w
    where w.disabled or w.failing_since < now() - interval '15 minutes' group by w.tenant_id
$$;
revoke all on function tenants_failing_webhooks from public;
