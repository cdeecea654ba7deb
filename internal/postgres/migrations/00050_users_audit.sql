-- +goose NO TRANSACTION
-- +goose Up
-- A delivery of a webhook looks up the users of its audit records. Without the index, PostgreSQL
-- read all users of the tenant. A failed build leaves an invalid index, so it is dropped first.
drop index concurrently if exists users_audit;
create index concurrently users_audit on users (tenant_id, audit_id);
