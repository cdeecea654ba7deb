-- Webhooks that a Tenant declares in spec.webhooks (docs/adr/0024-webhooks.md).

-- +goose Up
alter table webhooks add column declared boolean not null default false; -- by the Tenant; the command line does not change it
