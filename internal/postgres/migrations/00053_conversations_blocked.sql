-- +goose NO TRANSACTION
-- +goose Up
-- The blocked conversations of a user, newest first: those that become active when the user deletes others. Without the index,
-- PostgreSQL read all blocked conversations of the tenant. A failed build leaves an invalid index, so it is dropped first.
drop index concurrently if exists conversations_blocked;
create index concurrently conversations_blocked on conversations (tenant_id, user_id, updated_at, id) where status = 'blocked';
