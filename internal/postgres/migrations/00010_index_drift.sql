-- How many sweeps of a tenant in a row found drift that no pending job explains.

-- +goose Up
alter table index_sweeps
    add column drifted boolean not null default false,
    add column drifted_sweeps integer not null default 0;
comment on column index_sweeps.drifted is 'The unfinished sweep has found drift';
comment on column index_sweeps.drifted_sweeps is 'Consecutive complete sweeps that found drift, up to the latest';
