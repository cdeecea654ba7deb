-- +goose Up

create table cells (
    name        text primary key,
    region      text not null default '',
    max_tenants bigint not null default 0, -- 0: no limit
    max_units   bigint not null default 0,
    cordoned    boolean not null default false
);
comment on table cells is 'Vector stores other than the default one. The operator writes them from the Cell resources; connections are not stored';

-- Where a tenant requests to be placed: in a cell, in a cell of a region, or, if both are empty, in the default cell.
alter table tenants add column cell text not null default '';
alter table tenants add column region text not null default '';

create table tenant_units (
    tenant_id  uuid primary key references tenants on delete cascade,
    units      bigint not null,
    counted_at timestamptz not null default now()
);
comment on table tenant_units is 'Number of active units of each tenant in a cell, counted once an hour for its capacity';
