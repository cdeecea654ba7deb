-- A bulk deletion of memories in fewer steps. The triggers looked again for units and versions that the statement itself had deleted, and joined the
-- deleted rows with their tenant and user even if there was no erasure ledger.

-- +goose Up
-- delete_parts of 00039_merged_memories.sql, with mnemo.parts: 'deleted' tells it that the next statement that deletes memories also deletes
-- their units and versions. Memories merged into them are still deleted here.
-- +goose StatementBegin
create or replace function delete_parts() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    v_user    record;
    v_gone    uuid[];
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
        if exists (select from merged_memories g where g.tenant_id = v_user.tenant and g.user_id = v_user.id and g.merged_into = any(v_gone)) then
            delete from merged_memories g where g.tenant_id = v_user.tenant and g.user_id = v_user.id and g.merged_into = any(v_gone);
        end if;
    end loop;
    return null;
end $$;
-- +goose StatementEnd

-- record_object_erasures of 00015_deletions.sql, which looks for a ledger first.
-- +goose StatementBegin
create or replace function record_object_erasures() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
    if current_setting('mnemo.erasing', true) in ('account', 'undoable') or not exists (select from erasure_ledger where ledger is not null) then
        return null;
    end if;
    insert into erasures (kind, tenant_id, user_id, objects)
    select tg_argv[0], d.tenant_id, d.user_id, d.objects
    from (select tenant_id, user_id, array_agg(id::text) as objects from deleted group by tenant_id, user_id) d
    join tenants t on t.id = d.tenant_id and t.state <> 'purging'
    join users u on u.tenant_id = d.tenant_id and u.id = d.user_id and not u.purging;
    return null;
end $$;
-- +goose StatementEnd

-- A deletion of 1,000 memories writes records of 4 KB, which are moved to audit_records soon. They are not compressed before.
alter table audit_pending set (toast_tuple_target = 8160);
