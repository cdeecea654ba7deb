-- +goose Up

-- lexical_terms as before, except that words that are equally rare are in byte order, which API servers use for cached units.
-- +goose StatementBegin
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
        select u.tsv from units u
        where u.tenant_id = p_tenant and u.user_id = p_user and u.kind = p_kind and u.active
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
        where df > 0 or n = 300 and exists (select from units u
            where u.tenant_id = p_tenant and u.user_id = p_user and u.kind = p_kind and u.active and u.tsv @@ term)
    ), kept as (
        select lexeme, term, w.idf, w.idf > 0.5 as rare from weighed w
        where w.idf > 0.5 or n < 50 or not exists (select from weighed o where o.idf > 0.5)
        order by w.idf desc, lexeme limit 6
    )
    select array_agg(k.term order by k.idf desc, k.lexeme), array_agg(k.idf order by k.idf desc, k.lexeme), bool_or(k.rare)
    into terms, idf, telling from kept k;
end $$;
-- +goose StatementEnd
