-- +goose Up
-- killed counts the workers that ended without releasing the import, since its last progress: its file may be what ended them.
-- skip_invalid omits invalid lines of a Mnemo export instead of rejecting the file.
alter table imports
    add column if not exists killed smallint not null default 0,
    add column if not exists skip_invalid boolean not null default false;
