-- +goose NO TRANSACTION
-- +goose Up
-- A delivery of a webhook looks up the users of its audit records. It read all users of the tenant.
create index concurrently if not exists users_audit on users (tenant_id, audit_id);
