-- A secret has at most one holder, and few memories of a user have the same text. PostgreSQL assumes that a function returns 1,000 rows.
-- Therefore it read the users of all tenants to join them with a holder. Repeat "rows 1" when you replace these functions.

-- +goose Up
alter function user_token_holder(bytea) rows 1;
alter function oauth_holder(bytea, text) rows 1;
alter function memories_with_text(uuid, bigint, text) rows 1;
