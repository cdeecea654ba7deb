-- Shared places, and moving tenants between places.

-- +goose Up
alter table placements
    -- The collection has a key instead of partitions: partition is its value.
    add column shared boolean not null default false,
    -- What the vector store numbers the place by, when it was last filled;
    -- another number says that it was lost since.
    add column made bigint not null default 0;

-- Numbers places that are not a tenant's first, and the runs that fill them.
create sequence place_ids as bigint;

-- A place that is being filled from units: where its tenant is, when that was
-- lost, or another one, which the tenant is moved to when all is there.
create table fills (
    tenant_id  uuid primary key references tenants on delete cascade,
    generation text not null,
    collection text not null,
    partition  text not null,
    shared     boolean not null,
    made       bigint not null, -- 0 until the vector store has it
    run        bigint not null default nextval('place_ids'), -- the job that works on it
    upto       bigint not null default 0, -- units up to this id are there
    heard_at   timestamptz not null default now(), -- when the job last said so
    started_at timestamptz not null default now(),
    unique (collection, partition)
);

-- +goose Down
drop table fills;
drop sequence place_ids;
alter table placements drop column shared, drop column made;
