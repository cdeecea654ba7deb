-- +goose Up

-- Links an outdated memory to the newer statement about the same thing. There is no
-- foreign key: reads ignore a link to a deleted memory, and a restore may write either first.
alter table memories add column superseded_by uuid, add column superseded_at timestamptz;
comment on column memories.superseded_by is 'The newer memory that replaces this one; both are kept';
comment on column memories.superseded_at is 'When the link was recorded';
create index memories_superseded_by on memories (tenant_id, user_id, superseded_by) where superseded_by is not null;
