-- name: MarkErasing :exec
-- Tells the triggers of the erasure ledger what deletes rows in this transaction.
select set_config('mnemo.erasing', @what::text, true);

-- name: KeepMemories :exec
insert into deletions (tenant_id, user_id, id, object, kind, content, expires_at)
select m.tenant_id, m.user_id, @deletion::uuid, m.id, 'memory', jsonb_build_object('row', to_jsonb(m),
    'versions', (select jsonb_agg(to_jsonb(v)) from memory_versions v
        where v.tenant_id = m.tenant_id and v.user_id = m.user_id and v.memory_id = m.id),
    'units', (select coalesce(jsonb_agg(to_jsonb(u)), '[]') from units u
        where u.tenant_id = m.tenant_id and u.user_id = m.user_id and u.memory_id = m.id)),
    clock_timestamp() + @undo_window::interval
from memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids::uuid[]);

-- name: KeepMerged :exec
-- What was merged into memories that are deleted, also indirectly.
insert into deletions (tenant_id, user_id, id, object, kind, content, expires_at)
select g.tenant_id, g.user_id, @deletion::uuid, g.id, 'memory', jsonb_build_object('merged', to_jsonb(g), 'units', '[]'::jsonb,
    'versions', (select jsonb_agg(to_jsonb(v)) from memory_versions v
        where v.tenant_id = g.tenant_id and v.user_id = g.user_id and v.memory_id = g.id)),
    clock_timestamp() + @undo_window::interval
from merged_memories g where g.tenant_id = @tenant_id and g.user_id = @user_id and g.id = any(array(select merged_tree(@tenant_id, @user_id, array(
    select m.id from memories m where m.tenant_id = @tenant_id and m.user_id = @user_id and m.id = any(@ids::uuid[])))));

-- name: KeepConversations :exec
insert into deletions (tenant_id, user_id, id, object, kind, content, expires_at)
select c.tenant_id, c.user_id, @deletion::uuid, c.id, 'conversation', jsonb_build_object('row', to_jsonb(c),
    'messages', (select coalesce(jsonb_agg(to_jsonb(m)), '[]') from messages m
        where m.tenant_id = c.tenant_id and m.user_id = c.user_id and m.conversation_id = c.id),
    'units', (select coalesce(jsonb_agg(to_jsonb(u)), '[]') from units u
        where u.tenant_id = c.tenant_id and u.user_id = c.user_id and u.conversation_id = c.id)),
    clock_timestamp() + @undo_window::interval
from conversations c where c.tenant_id = @tenant_id and c.user_id = @user_id and c.id = any(@ids::uuid[]);

-- name: TakeDeletion :many
-- Removes what a deletion kept, unless the deletion is final.
delete from deletions
where tenant_id = @tenant_id and user_id = @user_id and id = @id and kind = @kind and expires_at > clock_timestamp()
returning content;

-- name: DropDeletions :exec
delete from deletions where tenant_id = @tenant_id and user_id = @user_id;

-- name: ExpireDeletions :execrows
-- Makes some deletions final.
delete from deletions d using (
    select o.user_id, o.id, o.object from deletions o
    where o.tenant_id = @tenant_id and o.expires_at <= clock_timestamp()
    limit @batch::bigint for update skip locked
) old
where d.tenant_id = @tenant_id and d.user_id = old.user_id and d.id = old.id and d.object = old.object;
