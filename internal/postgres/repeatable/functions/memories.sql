-- require_created fails an insertion that was refused, so that it and the commit need one round trip.
create or replace function require_created(created boolean) returns void language plpgsql as $$
begin
    if not created then
        raise exception 'not created' using errcode = 'MN001';
    end if;
end $$;
revoke all on function require_created from public;

-- memories_with_text returns the user's memories with exactly this text. The hash includes the user: an application may
-- store the same text for each of a million users. No hash function is leakproof, so under row-level security
-- PostgreSQL would not use an index on the hash. Hence the function runs as the owner, and returns nothing unless its
-- scope is the transaction's. "offset 0" makes it compare the hash first: without statistics, PostgreSQL would read all
-- memories of the user.
create or replace function memories_with_text(p_tenant uuid, p_user bigint, p_text text)
returns table (id uuid, seq bigint, bucket_id bigint, agent_id text, run_id text, tags text[], metadata jsonb)
language plpgsql stable security definer rows 1 set search_path = pg_catalog, public, pg_temp as $$
#variable_conflict use_column
begin
    if p_tenant::text is distinct from current_setting('mnemo.tenant', true)
        or p_user::text is distinct from current_setting('mnemo.user', true) then
        return;
    end if;
    return query
        select m.id, m.seq, m.bucket_id, m.agent_id, m.run_id, m.tags, m.metadata
        from (select * from live_memories x where hashtextextended(x.text, x.user_id) = hashtextextended(p_text, p_user) offset 0) m
        where m.tenant_id = p_tenant and m.user_id = p_user and m.text = p_text;
end $$;
revoke all on function memories_with_text from public;
