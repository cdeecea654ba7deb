-- A secret has at most one holder. PostgreSQL assumes that a function returns 1,000 rows, and therefore read the users of all tenants to
-- join them.

-- +goose Up
alter function user_token_holder(bytea) rows 1;
alter function oauth_holder(bytea, text) rows 1;
