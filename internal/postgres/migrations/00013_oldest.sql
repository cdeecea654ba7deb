-- +goose Up
-- The oldest schema that a binary must be written for to work on this database.
-- Migrations only add, so that a release may be rolled back; the one that takes
-- away what binaries of the release before it still use raises this number.
create table schema_oldest (version bigint not null);
create unique index on schema_oldest ((true)); -- one row
insert into schema_oldest values (0);

-- +goose Down
drop table schema_oldest;
