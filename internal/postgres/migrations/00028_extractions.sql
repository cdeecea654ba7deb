-- Messages from which a chat model extracts facts (docs/connect/mem0.md). The facts are saved
-- before they are stored as memories, so that a retried job does not store them twice.

-- +goose Up
create table extractions (
    tenant_id   uuid not null,
    user_id     bigint not null,
    id          uuid not null,
    input       jsonb, -- messages, source and attributes; null when it is finished
    facts       jsonb, -- null before the model has answered, and when it is finished
    stored      integer not null default 0, -- number of the facts that are memories
    failure     text not null default '', -- why facts were not stored
    created_at  timestamptz not null default now(),
    finished_at timestamptz,
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
comment on table extractions is 'Messages until facts are extracted from them, and the outcome';
alter table extractions enable row level security;
create policy scope on extractions using (
    tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
    and (current_setting('mnemo.user', true) = '*'
         or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint));
create index extractions_finished on extractions (tenant_id, finished_at);
