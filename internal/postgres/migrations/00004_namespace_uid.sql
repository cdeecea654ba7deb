-- The namespace that owns the data of a tenant. Null for tenants that were stored
-- before, until their Tenant is reconciled.

-- +goose Up
alter table tenants add column namespace_uid text;
comment on column tenants.namespace_uid is 'UID of the Namespace whose Tenants may adopt the data once it is retained';
