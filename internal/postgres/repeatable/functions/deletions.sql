-- The deletion of what belongs to memories, conversations and units (docs/adr/0027-deletion-by-trigger.md).

-- merged_tree returns what was merged into memories, also indirectly. The lateral query reads an index for each memory,
-- whatever the statistics are; a union ends for memories that were merged in a circle.
create or replace function merged_tree(v_tenant uuid, v_user bigint, v_ids uuid[]) returns setof uuid
language sql stable set search_path = pg_catalog, public, pg_temp as $$
    with recursive tree as (
        select r.id from unnest(v_ids) r (id)
        union
        select g.id from tree t cross join lateral (
            select m.id from merged_memories m where m.tenant_id = v_tenant and m.user_id = v_user and m.merged_into = t.id offset 0) g
    )
    select id from tree where id <> all(v_ids)
$$;
revoke all on function merged_tree from public;

-- delete_parts deletes the units of deleted memories and conversations, and the versions of memories, in one statement.
-- A foreign key would run a query for each row, in a partitioned table, and without statistics this query may read all
-- units of the user. Versions and units are only inserted by transactions that insert or lock the row that they belong
-- to. Like the deletion of a foreign key, it runs as the owner.
--
-- What was merged into a deleted memory is deleted with it, and only here released from the quota. This deletion fires
-- the trigger once more, which counts the memories and deletes their versions. A memory that a transaction moves
-- between memories and merged_memories keeps its versions and what was merged into it: the transaction inserts the row
-- before it deletes the other one.
--
-- mnemo.parts: 'deleted' tells it that the next statement that deletes memories also deletes their units and versions.
create or replace function delete_parts() returns trigger
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    v_user    record;
    v_gone    uuid[];
    v_tree    uuid[];
    v_bytes   bigint;
    v_deleted boolean := tg_table_name = 'memories' and coalesce(current_setting('mnemo.parts', true), '') = 'deleted';
begin
    if v_deleted then
        perform set_config('mnemo.parts', '', true);
    end if;
    for v_user in select d.tenant_id as tenant, d.user_id as id, array_agg(d.id) as deleted from deleted d group by d.tenant_id, d.user_id loop
        if tg_table_name = 'conversations' then
            delete from units u where u.tenant_id = v_user.tenant and u.user_id = v_user.id and u.conversation_id = any(v_user.deleted);
            continue;
        end if;
        if v_deleted then
            v_gone := v_user.deleted;
        elsif tg_table_name = 'memories' then
            delete from units u where u.tenant_id = v_user.tenant and u.user_id = v_user.id and u.memory_id = any(v_user.deleted);
            v_gone := array(select w.id from unnest(v_user.deleted) w (id) where not exists (
                select from merged_memories g where g.tenant_id = v_user.tenant and g.user_id = v_user.id and g.id = w.id));
        else
            v_gone := array(select w.id from unnest(v_user.deleted) w (id) where not exists (
                select from memories m where m.tenant_id = v_user.tenant and m.user_id = v_user.id and m.id = w.id));
            select coalesce(sum(octet_length(v.text)), 0)
                + (select coalesce(sum(d.attribute_bytes), 0) from deleted d where d.user_id = v_user.id and d.id = any(v_gone)) into v_bytes
            from memory_versions v where v.tenant_id = v_user.tenant and v.user_id = v_user.id and v.memory_id = any(v_gone);
            update usage u set memories = u.memories - cardinality(v_gone), storage = u.storage - v_bytes
            where u.tenant_id = v_user.tenant and cardinality(v_gone) > 0;
            update users x set memories = x.memories - cardinality(v_gone)
            where x.tenant_id = v_user.tenant and x.id = v_user.id and cardinality(v_gone) > 0;
        end if;
        if not v_deleted then
            delete from memory_versions v where v.tenant_id = v_user.tenant and v.user_id = v_user.id and v.memory_id = any(v_gone);
        end if;
        v_tree := array(select merged_tree(v_user.tenant, v_user.id, v_gone));
        if cardinality(v_tree) > 0 then
            delete from merged_memories g where g.tenant_id = v_user.tenant and g.user_id = v_user.id and g.id = any(v_tree);
        end if;
    end loop;
    return null;
end $$;
revoke all on function delete_parts from public;

