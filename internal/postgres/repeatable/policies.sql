-- Row-level security: a transaction sees the rows of its scope. postgres.DB sets mnemo.tenant and mnemo.user with SET
-- LOCAL. Both are '' on a pooled connection after commit, hence nullif. The user '*' is all users of the tenant, for
-- jobs and the operator. Without a scope no row is visible. The selects make PostgreSQL evaluate the scope once per
-- statement instead of once per row.
--
-- The policies of a partitioned table do not apply to statements that name a partition, so each partition has its own,
-- and Migrate grants no access to partitions. The owner is exempt (no force): lexical_ranking depends on it.
do $$
declare
    t            text;
    scope_tenant constant text := $q$(select nullif(current_setting('mnemo.tenant', true), '')::uuid)$q$;
    every_user   constant text := $q$(select current_setting('mnemo.user', true) = '*')$q$;
    scope_user   constant text := $q$(select nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint)$q$;
    belongs      text;
begin
    foreach t in array array[
        -- Tables of user data.
        'user_tokens', 'oauth_grants', 'oauth_secrets', 'idempotency_keys',
        'buckets', 'memories', 'memory_versions', 'merged_memories', 'extractions',
        'conversations', 'messages', 'imports', 'import_chunks', 'import_ledger',
        'units', 'units_0', 'units_1', 'units_2', 'units_3', 'units_4', 'units_5', 'units_6', 'units_7',
        'deletions',
        -- Audit records have a pseudonym instead of the user. users has no policy.
        'audit_pending', 'audit_records',
        -- Rows of a tenant, which belong to no user.
        'audit_chains', 'webhooks'
    ] loop
        belongs := case
            when t in ('audit_chains', 'webhooks') then every_user
            when t in ('audit_pending', 'audit_records') then
                format('(%s or subject = (select u.audit_id from users u where u.tenant_id = %s and u.id = %s))',
                    every_user, scope_tenant, scope_user)
            else format('(%s or user_id = %s)', every_user, scope_user)
        end;
        execute format('alter table %I enable row level security', t);
        execute format('drop policy if exists scope on %I', t);
        execute format('create policy scope on %I using (tenant_id = %s and %s)', t, scope_tenant, belongs);
    end loop;
end $$;
