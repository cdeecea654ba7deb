-- Attributes of memories, by which filters select.

-- +goose Up
alter table memories
    add column agent_id        text not null default '', -- '' for none
    add column run_id          text not null default '', -- '' for none
    add column tags            text[] not null default '{}', -- sorted, without duplicates
    add column metadata        jsonb not null default '{}',
    add column attribute_bytes integer not null default 0; -- what the columns above count towards the storage quota

-- lexical_ranking returns the user's best units for a query, best first. Up to
-- 5,000 units it ranks all that contain any selected word. Beyond, an OR would
-- rank nearly everything, so a unit needs words worth half of the total weight:
-- more if too many units qualify, less if too few do.
-- p_from and p_to filter by the creation of the memory or conversation, p_after
-- and p_before by the time of the message. p_memories, unless it is null, restricts it to
-- units of these memories.
-- +goose StatementBegin
create function lexical_ranking(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_after timestamptz, p_before timestamptz, p_query text, p_limit int, p_memories uuid[])
returns table (unit_id bigint, score float8)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan set jit = off as $$
declare
    terms   tsquery[];
    idf     float8[];
    telling boolean;
    total   float8 := 0;
    large   boolean;
    wanted  tsquery;
    better  tsquery;
    hits    int;
    since   bigint := 0;
    source  text;
    ranking text := '0';
begin
    if p_tenant::text is distinct from current_setting('mnemo.tenant', true)
        or p_user::text is distinct from current_setting('mnemo.user', true) or p_kind not in (1, 2) then
        return;
    end if;
    select t.terms, t.idf, t.telling into terms, idf, telling from lexical_terms(p_tenant, p_user, p_kind, p_query) t;
    if terms is null then
        return;
    end if;
    -- The indexes are partial, so the kind must be a constant in the plan.
    source := format(' from units u where u.tenant_id = $1 and u.user_id = $2 and u.kind = %s and u.active', p_kind);
    if p_memories is not null then
        source := source || ' and u.memory_id = any($3)';
    end if;
    execute 'select count(*) > 5000 from (select' || source || ' limit 5001) s' using p_tenant, p_user, p_memories into large;
    if large and not telling then
        -- Only common words: rank the latest units.
        execute 'select min(id) from (select u.id' || source || ' order by u.id desc limit 5000) s'
            using p_tenant, p_user, p_memories into since;
        source := source || ' and u.id >= ' || since;
    end if;
    if p_group <> 0 then
        source := source || ' and u.group_id = $5';
    end if;
    if p_from is not null or p_to is not null then
        source := source || format(' and exists (select from %I o where o.tenant_id = u.tenant_id
            and o.user_id = u.user_id and o.id = u.%I and o.created_at >= coalesce($6, ''-infinity'')
            and o.created_at < coalesce($7, ''infinity''))',
            (array['memories', 'conversations'])[p_kind], (array['memory_id', 'conversation_id'])[p_kind]);
    end if;
    if p_kind = 2 and (p_after is not null or p_before is not null) then
        source := source || ' and exists (select from messages g where g.tenant_id = u.tenant_id
            and g.user_id = u.user_id and g.conversation_id = u.conversation_id and g.seq = u.seq
            and g.created_at >= coalesce($8, ''-infinity'') and g.created_at < coalesce($9, ''infinity''))';
    end if;
    source := source || ' and u.tsv @@ $4';
    for i in 1..cardinality(terms) loop
        wanted := coalesce(wanted || terms[i], terms[i]);
        total := total + idf[i];
        ranking := ranking || format(' + $11[%s] * ts_rank(u.tsv, $10[%s])', i, i);
    end loop;
    if large and telling then
        wanted := lexical_need(terms, idf, 0.5 * total);
        execute 'select count(*) from (select' || source || ' limit 3000) s'
            using p_tenant, p_user, p_memories, wanted, p_group, p_from, p_to, p_after, p_before into hits;
        if hits >= 3000 then
            foreach total in array array[0.7 * total, 0.9 * total] loop
                better := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 3000) s'
                    using p_tenant, p_user, p_memories, better, p_group, p_from, p_to, p_after, p_before into hits;
                exit when hits < 100;
                wanted := better;
                exit when hits < 3000;
            end loop;
        elsif hits < 100 then
            foreach total in array array[0.35 * total, 0.2 * total] loop
                wanted := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 100) s'
                    using p_tenant, p_user, p_memories, wanted, p_group, p_from, p_to, p_after, p_before into hits;
                exit when hits >= 100;
            end loop;
        end if;
    end if;
    return query execute 'select u.id, (' || ranking || ') / (1 + ln(length(u.tsv))) as score' || source
        || ' order by score desc, u.id desc limit ' || p_limit
        using p_tenant, p_user, p_memories, wanted, p_group, p_from, p_to, p_after, p_before, terms, idf;
end $$;
-- +goose StatementEnd
revoke all on function lexical_ranking(uuid, bigint, smallint, bigint, timestamptz, timestamptz, timestamptz, timestamptz, text, int, uuid[]) from public;

-- lexical_search is lexical_ranking of all memories, for the previous release.
-- +goose StatementBegin
create or replace function lexical_search(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_after timestamptz, p_before timestamptz, p_query text, p_limit int)
returns table (unit_id bigint, score float8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select r.unit_id, r.score from lexical_ranking(p_tenant, p_user, p_kind, p_group, p_from, p_to, p_after, p_before, p_query, p_limit, null) r
$$;
-- +goose StatementEnd
