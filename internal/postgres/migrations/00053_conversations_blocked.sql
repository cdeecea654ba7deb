-- +goose NO TRANSACTION
-- +goose Up
-- The blocked conversations of a user, newest first: those that become active when the user deletes others. Without the index,
-- PostgreSQL read all blocked conversations of the tenant.
create index concurrently if not exists conversations_blocked on conversations (tenant_id, user_id, updated_at, id) where status = 'blocked';
