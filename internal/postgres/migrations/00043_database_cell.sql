-- The number of this database among those of an installation (docs/adr/0033-database-cells.md).

-- +goose Up
create table database_cell (cell smallint not null check (cell between 0 and 4095));
create unique index on database_cell ((true)); -- at most one row
comment on table database_cell is 'The number of this database, set by the first migration. It determines the ranges of the sequences';

-- A database with rows has the number 0: its ids are below 2^40. mnemo migrate sets that of a new one.
insert into database_cell select 0 from users_id_seq where is_called;

-- A copy of a tenant from another database contains the rows that these triggers derive.
create or replace trigger count_insert after insert on users for each row
    when (new.kind = 'application_user' and new.active and current_setting('mnemo.copying', true) is distinct from 'on')
    execute function count_application_users();
create or replace trigger begin_metering after insert on usage for each row
    when (current_setting('mnemo.copying', true) is distinct from 'on')
    execute function usage_begin();
