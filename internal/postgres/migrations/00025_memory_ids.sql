-- +goose NO TRANSACTION
-- The mem0 API names a memory without its user: an application's key finds the owner by this index.

-- +goose Up
create index concurrently memories_id on memories (tenant_id, id);
