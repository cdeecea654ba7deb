-- +goose NO TRANSACTION
-- +goose Up
-- Replaces messages_time, with which PostgreSQL read all messages of a user for each unit: while a table has no statistics, PostgreSQL prefers
-- its smallest index. Only a statement that compares times fulfills the condition, which is true for every message.
create index concurrently if not exists messages_created on messages (tenant_id, user_id, created_at) where created_at is not null;
drop index concurrently if exists messages_time;
