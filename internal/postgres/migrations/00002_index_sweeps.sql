-- When the index of each tenant was last compared with the database.

-- +goose Up
create table index_sweeps (
    tenant_id uuid primary key references tenants on delete cascade,
    began_at  timestamptz not null, -- the latest attempt: tenants are swept oldest first
    cursor    bigint not null default 0, -- the last unit compared, 0 between sweeps
    swept_at  timestamptz not null  -- the latest complete sweep, or the creation of the tenant
);
comment on table index_sweeps is 'The progress of the sweep that compares the vector index with the database. A tenant without a row was never swept';

-- The age of a sweep counts from this migration.
insert into index_sweeps (tenant_id, began_at, swept_at) select tenant_id, '-infinity', now() from placements;
