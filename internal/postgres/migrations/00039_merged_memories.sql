-- Near-duplicates that their user merged into another memory (docs/adr/0029-merged-memories.md).

-- +goose Up
-- A merged memory is a row here instead of in memories, so that no query of memories can return it. Its versions stay in
-- memory_versions and count towards the quota, as does the memory. Its units are deleted, and created again when it is restored.
create table merged_memories (
    -- The columns of memories.
    tenant_id       uuid not null,
    user_id         bigint not null,
    id              uuid not null,
    seq             bigint not null,
    bucket_id       bigint not null, -- may be deleted: a restored memory is then in the default bucket
    text            text not null,
    tokens          integer not null,
    source          text not null,
    version         integer not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    superseded_by   uuid,
    superseded_at   timestamptz,
    agent_id        text not null,
    run_id          text not null,
    tags            text[] not null,
    metadata        jsonb not null,
    attribute_bytes integer not null,

    merged_into     uuid not null, -- the memory that was kept, which may itself be merged later
    merged_at       timestamptz not null,
    relinked        uuid[] not null default '{}', -- memories that it superseded, and that merged_into supersedes since
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index merged_memories_into on merged_memories (tenant_id, user_id, merged_into);
comment on table merged_memories is 'Memories that were merged into another one';
alter table merged_memories enable row level security;
create policy scope on merged_memories using (
    tenant_id = (select nullif(current_setting('mnemo.tenant', true), '')::uuid)
    and ((select current_setting('mnemo.user', true) = '*')
         or user_id = (select nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint)));

-- delete_parts runs as the owner, like the deletion of a foreign key. The memories merged into a deleted memory are deleted
-- with it, also by paths and releases that do not know them, and only here they are released from the quota. A memory that
-- a transaction moves between memories and merged_memories keeps its versions and what was merged into it: the transaction
-- inserts the row before it deletes the other one.
-- +goose StatementBegin
create or replace function delete_parts() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
    v_user  record;
    v_gone  uuid[];
    v_bytes bigint;
begin
    for v_user in select d.tenant_id as tenant, d.user_id as id, array_agg(d.id) as deleted from deleted d group by d.tenant_id, d.user_id loop
        if tg_table_name = 'conversations' then
            delete from units u where u.tenant_id = v_user.tenant and u.user_id = v_user.id and u.conversation_id = any(v_user.deleted);
            continue;
        end if;
        if tg_table_name = 'memories' then
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
        delete from memory_versions v where v.tenant_id = v_user.tenant and v.user_id = v_user.id and v.memory_id = any(v_gone);
        if exists (select from merged_memories g where g.tenant_id = v_user.tenant and g.user_id = v_user.id and g.merged_into = any(v_gone)) then
            delete from merged_memories g where g.tenant_id = v_user.tenant and g.user_id = v_user.id and g.merged_into = any(v_gone);
        end if;
    end loop;
    return null;
end $$;
-- +goose StatementEnd
create trigger delete_parts after delete on merged_memories referencing old table as deleted
    for each statement execute function delete_parts();
create trigger record_delete after delete on merged_memories referencing old table as deleted
    for each statement execute function record_object_erasures('memory');
