-- One statement deletes the versions and units of deleted memories, and the units of deleted conversations. Foreign keys
-- ran one query for each deleted row, in a partitioned table, and without statistics this query may read all units of the
-- user. Versions and units are only inserted by transactions that insert or lock the row that they belong to.

-- +goose Up
-- delete_parts runs as the owner, like the deletion of a foreign key.
-- +goose StatementBegin
create function delete_parts() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    v_user record;
begin
    for v_user in select d.tenant_id as tenant, d.user_id as id, array_agg(d.id) as deleted from deleted d group by d.tenant_id, d.user_id loop
        if tg_table_name = 'memories' then
            delete from units u where u.tenant_id = v_user.tenant and u.user_id = v_user.id and u.memory_id = any(v_user.deleted);
            delete from memory_versions v where v.tenant_id = v_user.tenant and v.user_id = v_user.id and v.memory_id = any(v_user.deleted);
        else
            delete from units u where u.tenant_id = v_user.tenant and u.user_id = v_user.id and u.conversation_id = any(v_user.deleted);
        end if;
    end loop;
    return null;
end $$;
-- +goose StatementEnd
revoke all on function delete_parts() from public;
create trigger delete_parts after delete on memories referencing old table as deleted
    for each statement execute function delete_parts();
create trigger delete_parts after delete on conversations referencing old table as deleted
    for each statement execute function delete_parts();
alter table memory_versions drop constraint memory_versions_tenant_id_user_id_memory_id_fkey;
alter table units drop constraint units_tenant_id_user_id_memory_id_fkey, drop constraint units_tenant_id_user_id_conversation_id_fkey;
