-- One-time sign-in links (docs/security.md).
--
-- The secret of a link is a row of sessions: it ends with the password, the user and the
-- tenant, and has erasure records, as a session has. A binary of the previous release would
-- accept the secret as a cookie, which signs in the same user.

-- +goose Up
alter table sessions add column one_time boolean not null default false;
comment on column sessions.one_time is 'The secret is that of a one-time sign-in link, not of a cookie';
