-- +goose NO TRANSACTION
-- +goose Up

-- For memories_with_text. It replaces the index on the text alone.
create index concurrently if not exists memories_text_hash on memories using hash (hashtextextended(text, user_id));
drop index concurrently if exists memories_text;
