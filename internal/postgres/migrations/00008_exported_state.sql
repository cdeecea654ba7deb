-- Which state of a conversation comes from another platform's export, so that the newest
-- export wins in any order of imports. Rows that were stored before count as sent online:
-- no import removes them.

-- +goose Up
alter table conversations add column exported_at timestamptz;
comment on column conversations.exported_at is 'Update time in the newest imported export. Null if there is none';
alter table messages add column exported boolean not null default false;
comment on column messages.exported is 'Part of the newest imported export. A newer export removes the message if it lacks it';
