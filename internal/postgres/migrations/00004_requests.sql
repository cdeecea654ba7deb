-- What is kept of requests: the answers of those that may be sent again, and
-- how many a tenant made this minute.

-- +goose Up

-- A row is written in the transaction of what the request did. It holds ids,
-- numbers and hashes, never text.
create table idempotency_keys (
    tenant_id  uuid not null,
    user_id    bigint not null,
    route      text not null,  -- what is asked for, such as memory
    key        bytea not null, -- SHA-256 of the client's key
    body       bytea not null, -- SHA-256 of the request's body
    answer     jsonb,          -- null only within its transaction
    created_at timestamptz not null default now(),
    primary key (tenant_id, user_id, route, key),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index idempotency_keys_age on idempotency_keys (tenant_id, user_id, created_at);

alter table idempotency_keys enable row level security;
create policy scope on idempotency_keys using (
    tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
    and (current_setting('mnemo.user', true) = '*'
         or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint));

-- Of each tenant the minute it was last active in. Replicas take permits in
-- blocks. Unlogged: losing it costs a minute's count, writing it costs no WAL.
create unlogged table rate_windows (
    tenant_id uuid primary key references tenants on delete cascade,
    minute    timestamptz not null,
    used      bigint not null, -- permits taken in it
    granted   bigint not null  -- how many of them were taken last
) with (fillfactor = 50);

-- +goose Down
drop table rate_windows, idempotency_keys;
