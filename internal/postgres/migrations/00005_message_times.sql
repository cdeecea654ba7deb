-- Questions about a time: messages by when they were written. lexical_search
-- stays for the binary of the version before.

-- +goose Up
create index messages_time on messages (tenant_id, user_id, created_at);

-- lexical_search_between returns the user's best units for a question, best first. Of
-- up to 5,000 units it ranks those with any of the telling words. Beyond, it
-- asks for half of what the words weigh together, less when few units have it
-- and more when too many do: an OR would rank nearly everything.
-- The owner's time of creation counts for p_from and p_to; the message's for
-- p_after and p_before, which narrow chats only.
-- +goose StatementBegin
create function lexical_search_between(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_after timestamptz, p_before timestamptz, p_query text, p_limit int)
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
    -- One-shot plans with the constants in them: the indexes are partial.
    source := format(' from units u where u.tenant_id = $1 and u.user_id = $2 and u.kind = %s and u.active', p_kind);
    execute 'select count(*) > 5000 from (select' || source || ' limit 5001) s' using p_tenant, p_user into large;
    if large and not telling then
        -- Common words only: nothing but their units' age tells them apart.
        execute 'select min(id) from (select u.id' || source || ' order by u.id desc limit 5000) s'
            using p_tenant, p_user into since;
        source := source || ' and u.id >= ' || since;
    end if;
    if p_group <> 0 then
        source := source || ' and u.group_id = $4';
    end if;
    if p_from is not null or p_to is not null then
        source := source || format(' and exists (select from %I o where o.tenant_id = u.tenant_id
            and o.user_id = u.user_id and o.id = u.%I and o.created_at >= coalesce($5, ''-infinity'')
            and o.created_at < coalesce($6, ''infinity''))',
            (array['memories', 'conversations'])[p_kind], (array['memory_id', 'conversation_id'])[p_kind]);
    end if;
    if p_kind = 2 and (p_after is not null or p_before is not null) then
        source := source || ' and exists (select from messages g where g.tenant_id = u.tenant_id
            and g.user_id = u.user_id and g.conversation_id = u.conversation_id and g.seq = u.seq
            and g.created_at >= coalesce($7, ''-infinity'') and g.created_at < coalesce($8, ''infinity''))';
    end if;
    source := source || ' and u.tsv @@ $3';
    for i in 1..cardinality(terms) loop
        wanted := coalesce(wanted || terms[i], terms[i]);
        total := total + idf[i];
        ranking := ranking || format(' + $10[%s] * ts_rank(u.tsv, $9[%s])', i, i);
    end loop;
    if large and telling then
        wanted := lexical_need(terms, idf, 0.5 * total);
        execute 'select count(*) from (select' || source || ' limit 3000) s'
            using p_tenant, p_user, wanted, p_group, p_from, p_to, p_after, p_before into hits;
        if hits >= 3000 then
            foreach total in array array[0.7 * total, 0.9 * total] loop
                better := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 3000) s'
                    using p_tenant, p_user, better, p_group, p_from, p_to, p_after, p_before into hits;
                exit when hits < 100;
                wanted := better;
                exit when hits < 3000;
            end loop;
        elsif hits < 100 then
            foreach total in array array[0.35 * total, 0.2 * total] loop
                wanted := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 100) s'
                    using p_tenant, p_user, wanted, p_group, p_from, p_to, p_after, p_before into hits;
                exit when hits >= 100;
            end loop;
        end if;
    end if;
    return query execute 'select u.id, (' || ranking || ') / (1 + ln(length(u.tsv))) as score' || source
        || ' order by score desc, u.id desc limit ' || p_limit
        using p_tenant, p_user, wanted, p_group, p_from, p_to, p_after, p_before, terms, idf;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function lexical_search(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_query text, p_limit int)
returns table (unit_id bigint, score float8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select * from lexical_search_between(p_tenant, p_user, p_kind, p_group, p_from, p_to, null, null, p_query, p_limit)
$$;
-- +goose StatementEnd

revoke all on function lexical_search_between(uuid, bigint, smallint, bigint, timestamptz, timestamptz, timestamptz, timestamptz, text, int) from public;

-- +goose Down
-- +goose StatementBegin
create or replace function lexical_search(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_query text, p_limit int)
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
    -- One-shot plans with the constants in them: the indexes are partial.
    source := format(' from units u where u.tenant_id = $1 and u.user_id = $2 and u.kind = %s and u.active', p_kind);
    execute 'select count(*) > 5000 from (select' || source || ' limit 5001) s' using p_tenant, p_user into large;
    if large and not telling then
        -- Common words only: nothing but their units' age tells them apart.
        execute 'select min(id) from (select u.id' || source || ' order by u.id desc limit 5000) s'
            using p_tenant, p_user into since;
        source := source || ' and u.id >= ' || since;
    end if;
    if p_group <> 0 then
        source := source || ' and u.group_id = $4';
    end if;
    if p_from is not null or p_to is not null then
        source := source || format(' and exists (select from %I o where o.tenant_id = u.tenant_id
            and o.user_id = u.user_id and o.id = u.%I and o.created_at >= coalesce($5, ''-infinity'')
            and o.created_at < coalesce($6, ''infinity''))',
            (array['memories', 'conversations'])[p_kind], (array['memory_id', 'conversation_id'])[p_kind]);
    end if;
    source := source || ' and u.tsv @@ $3';
    for i in 1..cardinality(terms) loop
        wanted := coalesce(wanted || terms[i], terms[i]);
        total := total + idf[i];
        ranking := ranking || format(' + $8[%s] * ts_rank(u.tsv, $7[%s])', i, i);
    end loop;
    if large and telling then
        wanted := lexical_need(terms, idf, 0.5 * total);
        execute 'select count(*) from (select' || source || ' limit 3000) s'
            using p_tenant, p_user, wanted, p_group, p_from, p_to into hits;
        if hits >= 3000 then
            foreach total in array array[0.7 * total, 0.9 * total] loop
                better := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 3000) s'
                    using p_tenant, p_user, better, p_group, p_from, p_to into hits;
                exit when hits < 100;
                wanted := better;
                exit when hits < 3000;
            end loop;
        elsif hits < 100 then
            foreach total in array array[0.35 * total, 0.2 * total] loop
                wanted := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 100) s'
                    using p_tenant, p_user, wanted, p_group, p_from, p_to into hits;
                exit when hits >= 100;
            end loop;
        end if;
    end if;
    return query execute 'select u.id, (' || ranking || ') / (1 + ln(length(u.tsv))) as score' || source
        || ' order by score desc, u.id desc limit ' || p_limit
        using p_tenant, p_user, wanted, p_group, p_from, p_to, terms, idf;
end $$;
-- +goose StatementEnd
drop function lexical_search_between;
drop index messages_time;
