-- +goose NO TRANSACTION
-- +goose Up

-- For upload_bytes, which runs with every chunk of a file. Without chunk_bytes, so that
-- adding to it does not update the index.
create index concurrently if not exists imports_unfinished on imports (tenant_id, user_id)
    where status in ('uploading', 'queued', 'running');
