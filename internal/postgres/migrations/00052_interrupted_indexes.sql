-- +goose NO TRANSACTION
-- +goose Up
-- Earlier versions of `mnemo migrate` recorded these builds as complete although they had been interrupted. It now drops the invalid indexes
-- before any migration. The definitions are those of 00007_unfinished_imports.sql, 00025_memory_ids.sql and 00037_memory_text_hashes.sql.
create index concurrently if not exists imports_unfinished on imports (tenant_id, user_id)
    where status in ('uploading', 'queued', 'running');
create index concurrently if not exists memories_id on memories (tenant_id, id);
create index concurrently if not exists memories_text_hash on memories using hash (hashtextextended(text, user_id));
