-- Lexical search. @@ is not leakproof, so under row-level security PostgreSQL evaluates it after the policy and uses an
-- index on (user_id, tsv) for the user only. Hence lexical_ranking runs as the owner, who is not subject to the
-- policies. It returns ids and scores only, and nothing unless its scope is the transaction's.

-- lexical_need returns the query for units with terms whose idf sums up to at least need; null if the sum of all is
-- less. Terms must be ordered rarest first.
create or replace function lexical_need(terms tsquery[], idf float8[], need float8) returns tsquery
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    n       int := cardinality(terms);
    rest    float8 := 0;
    q       tsquery; -- the branch that includes the first term
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
revoke all on function lexical_need from public;

-- lexical_expected estimates for each share the number of n units that contain words worth this share of the total
-- weight, if words occur independently. Words that occur together make it an underestimate.
create or replace function lexical_expected(idf float8[], shares float8[], n float8) returns float8[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
    with chosen as (
        -- Each set of words, as bits. exp(-idf) is the share of units with a word.
        select exp(sum(case when s >> (w.i - 1)::int & 1 = 1 then -w.idf else ln(1 - exp(-w.idf)) end)) as probability,
            coalesce(sum(w.idf) filter (where s >> (w.i - 1)::int & 1 = 1), 0) as weight, sum(w.idf) as total
        from generate_series(0, (1 << cardinality(idf)) - 1) s cross join unnest(idf) with ordinality w (idf, i)
        group by s
    )
    select array(select n * coalesce(sum(c.probability) filter (where c.weight >= l.share * c.total - 1e-9), 0)
        from chosen c cross join unnest(shares) with ordinality l (share, i) group by l.i order by l.i)
$$;
revoke all on function lexical_expected from public;

-- lexical_terms estimates the rarity of each word of the query from the user's latest units and returns at most six
-- words, rarest first; words that are equally rare are in byte order. It omits words that occur in none of the user's
-- units, and those that occur in nearly every unit, unless there are few units or no other words. It runs with the
-- privileges of its caller.
create or replace function lexical_terms(p_tenant uuid, p_user bigint, p_kind smallint, p_query text,
    out terms tsquery[], out idf float8[], out telling boolean)
language plpgsql stable
set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan set jit = off as $$
begin
    with words as materialized (
        -- tsquery expects lexemes in single quotes.
        select lexeme collate "C" as lexeme, ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery as term
        from unnest(to_tsvector('english', p_query))
        order by positions[1] limit 64
    ), sample as materialized (
        select u.tsv from live_units u
        where u.tenant_id = p_tenant and u.user_id = p_user and u.kind = p_kind
        order by u.id desc limit 300
    ), size as (
        select count(*)::float8 as n from sample
    ), counted as materialized (
        select w.lexeme, w.term, (select count(*) from sample s where s.tsv @@ w.term) as df
        from words w
    ), weighed as (
        select lexeme, term, ln(1 + (n - df + 0.5) / (df + 0.5)) as idf, n
        from counted, size
        -- If the sample is all units, a word without a match is nowhere.
        where df > 0 or n = 300 and exists (select from live_units u
            where u.tenant_id = p_tenant and u.user_id = p_user and u.kind = p_kind and u.tsv @@ term)
    ), kept as (
        select lexeme, term, w.idf, w.idf > 0.5 as rare from weighed w
        where w.idf > 0.5 or n < 50 or not exists (select from weighed o where o.idf > 0.5)
        order by w.idf desc, lexeme limit 6
    )
    select array_agg(k.term order by k.idf desc, k.lexeme), array_agg(k.idf order by k.idf desc, k.lexeme), bool_or(k.rare)
    into terms, idf, telling from kept k;
end $$;
revoke all on function lexical_terms from public;

-- lexical_ranking returns the user's best units for a query, best first. Up to 5,000 units it ranks all that contain any
-- selected word. Beyond, an OR would rank nearly everything, so a unit needs words worth a share of the total weight. The
-- first share is the one that probably enough units have; a lower one follows if too few have it, and a higher one if too
-- many have it. At least as many units as the limit are ranked, if as many have enough of the words. A user whose counters
-- show many more than 5,000 units has them not counted again.
--
-- p_from and p_to filter by the creation of the memory or conversation, p_after and p_before by the time of the
-- message. p_memories, unless it is null, restricts it to units of these memories. It repeats the condition of the view
-- live_units, because views have no ctid.
create or replace function lexical_ranking(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_after timestamptz, p_before timestamptz, p_query text, p_limit int, p_memories uuid[])
returns table (unit_id bigint, score float8)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan set jit = off as $$
declare
    too_few  constant int := least(greatest(100, p_limit), 1000);
    too_many constant int := 3000;
    shares   constant float8[] := array[0.9, 0.7, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2]; -- of the total weight
    level    int := 3;
    step     int := 0;
    size     float8;
    expected float8[];
    terms    tsquery[];
    idf      float8[];
    telling  boolean;
    total    float8 := 0;
    large    boolean;
    wanted   tsquery;
    found    tid[]; -- the units that match wanted, if they are fewer than too_many; stable, because all statements have one snapshot
    need     tsquery;
    probed   tid[];
    since    bigint := 0;
    source   text;
    ranking  text := '0';
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
    -- Roughly the number of units: a message has about one.
    select case p_kind when 1 then u.memories else u.conversations * coalesce((select avg(c.message_count) from (
            select o.message_count from conversations o where o.tenant_id = p_tenant and o.user_id = p_user limit 50) c), 1) end
        into size from users u where u.tenant_id = p_tenant and u.id = p_user;
    large := p_memories is null and size > 20000;
    if large is not true then
        execute 'select count(*) > 5000 from (select' || source || ' limit 5001) s' using p_tenant, p_user, p_memories into large;
    end if;
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
        expected := lexical_expected(idf, shares, greatest(size, 5000));
        while level > 1 and expected[level] >= too_many loop
            level := level - 1;
        end loop;
        while level < cardinality(shares) and expected[level] < too_few loop
            level := level + 1;
        end loop;
        loop
            need := lexical_need(terms, idf, shares[level] * total);
            if step = 0 or need <> wanted then
                execute format('select array(select u.ctid%s limit %s)', source, too_many)
                    using p_tenant, p_user, p_memories, need, p_group, p_from, p_to, p_after, p_before into probed;
                exit when step < 0 and cardinality(probed) < too_few; -- the one before is better
                wanted := need;
                found := probed;
            end if;
            step := case when step <= 0 and level > 1 and cardinality(found) >= too_many then -1
                when step >= 0 and level < cardinality(shares) and cardinality(found) < too_few then 1 end;
            exit when step is null;
            level := level + step;
        end loop;
    end if;
    if cardinality(found) < too_many then
        source := ' from unnest($12) f (tid) cross join lateral (
            select u.id, u.tsv from units u where u.tenant_id = $1 and u.user_id = $2 and u.ctid = f.tid limit 1) u';
    end if;
    return query execute 'select u.id, (' || ranking || ') / (1 + ln(length(u.tsv))) as score' || source
        || ' order by score desc, u.id desc limit ' || p_limit
        using p_tenant, p_user, p_memories, wanted, p_group, p_from, p_to, p_after, p_before, terms, idf, found;
end $$;
revoke all on function lexical_ranking from public;
