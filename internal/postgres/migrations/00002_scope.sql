-- The second wall: what a scoped transaction sees. postgres.DB sets
-- mnemo.tenant and mnemo.user with SET LOCAL; they are '' after commit on a
-- pooled connection, hence nullif. mnemo.user '*' is all users of the tenant,
-- for jobs and the operator. Unset means nothing is seen.

-- +goose Up
-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['buckets', 'memories', 'memory_versions', 'imports', 'conversations', 'messages', 'units'] loop
        execute format('alter table %I enable row level security', t);
        execute format($p$
            create policy scope on %I using (
                tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
                and (current_setting('mnemo.user', true) = '*'
                     or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint))
        $p$, t);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['buckets', 'memories', 'memory_versions', 'imports', 'conversations', 'messages', 'units'] loop
        execute format('drop policy scope on %I', t);
        execute format('alter table %I disable row level security', t);
    end loop;
end $$;
-- +goose StatementEnd
