-- Tenants enter the index when a user outgrows exact scoring (docs/adr/0030-index-on-demand.md).

-- +goose Up
alter table tenants add column outgrown_at timestamptz; -- when a user first had more units than PostgreSQL is to score alone
