-- +goose Up
-- The text of a unit of a long message (longMessage in message_units.go), so that reading the unit does not read the whole message, which may have
-- megabytes. Null for others, and for units that earlier releases wrote.
alter table units add column if not exists piece text;
