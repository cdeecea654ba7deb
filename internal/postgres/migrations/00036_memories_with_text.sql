-- Finds the memories of a user with a text, however many other users have the same one.

-- +goose Up
-- memories_with_text returns the user's memories with exactly this text. The hash includes the user: an application may
-- store the same text for each of a million users, and the index on the text alone found the memories of all of
-- them. No hash function is leakproof, so under row-level security PostgreSQL would not use an index on the hash. Hence the
-- function runs as the owner, and returns nothing unless its scope is the transaction's. "offset 0" makes it
-- compare the hash first: without statistics, PostgreSQL would read all memories of the user.
-- +goose StatementBegin
create function memories_with_text(p_tenant uuid, p_user bigint, p_text text)
returns table (id uuid, seq bigint, bucket_id bigint, agent_id text, run_id text, tags text[], metadata jsonb)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
#variable_conflict use_column
begin
    if p_tenant::text is distinct from current_setting('mnemo.tenant', true)
        or p_user::text is distinct from current_setting('mnemo.user', true) then
        return;
    end if;
    return query
        select m.id, m.seq, m.bucket_id, m.agent_id, m.run_id, m.tags, m.metadata
        from (select * from memories x where hashtextextended(x.text, x.user_id) = hashtextextended(p_text, p_user) offset 0) m
        where m.tenant_id = p_tenant and m.user_id = p_user and m.text = p_text;
end $$;
-- +goose StatementEnd
revoke all on function memories_with_text(uuid, bigint, text) from public;
