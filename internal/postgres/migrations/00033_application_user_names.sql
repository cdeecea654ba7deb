-- Listings of application users, in the order of their names.

-- +goose Up
-- The index of unique names also serves them, but without statistics PostgreSQL expects one row, reads all
-- names that follow, a hundred thousand, and sorts them for each page.
create index users_of_applications on users (tenant_id, name) where kind = 'application_user' and active;
