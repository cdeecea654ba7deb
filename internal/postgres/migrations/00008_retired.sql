-- When a tenant was retired, for those whose Tenant is gone; and users whose
-- data goes though their tenant stays.

-- +goose Up
alter table tenants add column retired_at timestamptz;
update tenants set retired_at = updated_at where state <> 'active';
alter table users add column purging boolean not null default false;

-- +goose Down
alter table users drop column purging;
alter table tenants drop column retired_at;
