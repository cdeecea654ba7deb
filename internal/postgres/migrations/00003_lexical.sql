-- Lexical search. Under row-level security @@ is not leakproof, so an index on
-- (user, words) would serve the user alone; hence a function of the owner, who
-- is not under the policies. It takes the scope, gives nothing for another one
-- than the transaction's, and returns ids and scores only.

-- +goose Up

-- Jobs know units by tenant and id, whatever the user.
create index units_id on units (tenant_id, id);

-- Words and embedding of a unit stay in the row, uncompressed, up to a page:
-- ranking reads the words of thousands of units several times.
-- +goose StatementBegin
do $$
begin
    for i in 0..7 loop
        execute format('alter table units_%s set (toast_tuple_target = 8160)', i);
    end loop;
end $$;
-- +goose StatementEnd

-- lexical_need returns the query for units that hold terms whose idf sums up to
-- need; null when all together do not. The terms come rarest first.
-- +goose StatementBegin
create function lexical_need(terms tsquery[], idf float8[], need float8) returns tsquery
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    n       int := cardinality(terms);
    rest    float8 := 0;
    q       tsquery; -- what follows with the first term
    without tsquery;
begin
    for i in 1..n loop
        rest := rest + idf[i];
    end loop;
    if n = 0 or need > rest + 1e-9 then
        return null;
    end if;
    if need <= idf[1] then
        q := terms[1];
    else
        q := terms[1] && public.lexical_need(terms[2:], idf[2:], need - idf[1]);
    end if;
    if need > rest - idf[1] + 1e-9 then
        return q;
    end if;
    without := public.lexical_need(terms[2:], idf[2:], need);
    return coalesce(q || without, without);
end $$;
-- +goose StatementEnd

-- lexical_terms estimates, from the user's latest units, how rare each word of
-- the text is, and returns the words worth searching for, rarest first, at most
-- six. Words in nearly every unit tell nothing and are left out, unless there
-- are few units or no other words. It runs as its caller: as the owner within
-- lexical_search, under the policies for anyone else.
-- +goose StatementBegin
create function lexical_terms(p_tenant uuid, p_user bigint, p_kind smallint, p_query text,
    out terms tsquery[], out idf float8[], out telling boolean)
language plpgsql stable
set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan set jit = off as $$
begin
    with words as materialized (
        -- lexemes in single quotes, as tsquery reads them
        select ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery as term
        from unnest(to_tsvector('english', p_query))
        order by positions[1] limit 64
    ), sample as materialized (
        select u.tsv from units u
        where u.tenant_id = p_tenant and u.user_id = p_user and u.kind = p_kind and u.active
        order by u.id desc limit 300
    ), size as (
        select count(*)::float8 as n from sample
    ), counted as (
        select w.term, count(s.tsv) filter (where s.tsv @@ w.term) as df
        from words w left join sample s on true group by w.term
    ), weighed as (
        select term, ln(1 + (n - df + 0.5) / (df + 0.5)) as idf, n
        from counted, size
        -- A sample of all units knows which words are nowhere.
        where df > 0 or n = 300
    ), kept as (
        select term, w.idf, w.idf > 0.5 as rare from weighed w
        where w.idf > 0.5 or n < 50 or not exists (select from weighed o where o.idf > 0.5)
        order by w.idf desc, term limit 6
    )
    select array_agg(k.term order by k.idf desc, k.term), array_agg(k.idf order by k.idf desc, k.term), bool_or(k.rare)
    into terms, idf, telling from kept k;
end $$;
-- +goose StatementEnd

-- lexical_search returns the user's best units for a question, best first. Of
-- up to 5,000 units it ranks those with any of the telling words. Beyond, it
-- asks for half of what the words weigh together, less when few units have it
-- and more when too many do: an OR would rank nearly everything.
-- The owner's time of creation counts for p_from and p_to.
-- +goose StatementBegin
create function lexical_search(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
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

revoke all on function lexical_need(tsquery[], float8[], float8) from public;
revoke all on function lexical_terms(uuid, bigint, smallint, text) from public;
revoke all on function lexical_search(uuid, bigint, smallint, bigint, timestamptz, timestamptz, text, int) from public;

-- +goose Down
drop function lexical_search, lexical_terms, lexical_need;
drop index units_id;
