-- Administrators of a tenant, who see its members, keys and usage in the dashboard.

-- +goose Up
alter table tenants add column administrators text[] not null default '{}';
comment on column tenants.administrators is 'Names of listed users, and e-mail addresses in lower case of users of an identity provider';
