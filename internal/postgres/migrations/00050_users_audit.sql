-- +goose NO TRANSACTION
-- +goose Up
-- A delivery of a webhook looks up the users of its audit records. It read all users of the tenant.
-- A build that failed leaves an invalid index.
drop index concurrently if exists users_audit;
create index concurrently users_audit on users (tenant_id, audit_id);
