-- Passwords that users replaced in the dashboard (docs/adr/0025-generated-passwords.md). The
-- operator then removes the password from the user's Secret.

-- +goose Up
alter table users add column password_replaced boolean not null default false;
comment on column users.password_replaced is 'The user created the password; false again when the operator issues one';
