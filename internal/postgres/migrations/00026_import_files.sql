-- +goose Up

-- The name of an imported file, without its path; empty if it is unknown.
alter table imports add column file text not null default '';
