-- +goose NO TRANSACTION
-- +goose Up

-- Finds the memory with a text. A btree cannot contain long texts, and an index on their
-- hash is not used under row-level security, because no hash function is leakproof.
create index concurrently if not exists memories_text on memories using hash (text);
