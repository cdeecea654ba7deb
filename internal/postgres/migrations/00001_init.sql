-- The first schema. Every table of a user's data starts its key with the
-- tenant and is under row-level security (00002); the app's role is not the owner.

-- +goose Up
create extension if not exists btree_gin;

create table tenants (
    id              uuid primary key, -- uid of the Tenant resource that made it
    resource        uuid not null unique, -- uid of the one it belongs to now: another one after a claim
    cluster         text not null,    -- uid of the kube-system namespace it was made by
    namespace       text not null,
    name            text not null,
    display_name    text not null default '',
    state           text not null default 'active' check (state in ('active', 'retained', 'purging')),
    suspended       boolean not null default false,
    deletion_policy text not null default 'Retain' check (deletion_policy in ('Retain', 'Delete')),
    isolation       text not null default 'Partition' check (isolation in ('Partition', 'Shared')),
    token_overlap   interval not null default '0',
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now()
);
create unique index tenants_name on tenants (cluster, namespace, name);

create table quotas (
    tenant_id           uuid primary key references tenants on delete cascade,
    memories            bigint not null,
    conversations       bigint not null,
    storage             bigint not null, -- bytes
    users               bigint not null,
    requests_per_minute bigint not null,
    list_tokens         bigint not null,
    user_memories       bigint not null,
    user_conversations  bigint not null
);

-- What a tenant holds. Writers lock this row first, then the user's.
create table usage (
    tenant_id     uuid primary key references tenants on delete cascade,
    memories      bigint not null default 0 check (memories >= 0),
    conversations bigint not null default 0 check (conversations >= 0), -- active
    blocked       bigint not null default 0 check (blocked >= 0),
    storage       bigint not null default 0 check (storage >= 0)        -- bytes
);

-- Where a tenant's vectors are: a partition of a numbered collection.
create table placements (
    tenant_id  uuid primary key references tenants on delete cascade,
    generation text not null,     -- the embedding model and dimensions
    collection text not null,
    partition  text not null,
    unique (collection, partition)
);

create table users (
    tenant_id     uuid not null references tenants on delete cascade,
    id            bigint not null generated always as identity unique,
    name          text not null,
    email         text not null default '',
    active        boolean not null default true, -- false: no longer listed, no access
    password_hash bytea,
    memory_seq    bigint not null default 0, -- the order of the user's writes
    memories      bigint not null default 0 check (memories >= 0),
    conversations bigint not null default 0 check (conversations >= 0), -- active
    created_at    timestamptz not null default now(),
    primary key (tenant_id, id),
    unique (tenant_id, name)
);

create table tokens (
    tenant_id    uuid not null,
    user_id      bigint not null,
    generation   bigint not null,
    hash         bytea not null unique,
    issuer       text not null check (issuer in ('operator', 'user')),
    created_at   timestamptz not null default now(),
    expires_at   timestamptz, -- set when a newer one took over; in the past: revoked
    last_used_at timestamptz,
    primary key (tenant_id, user_id, generation),
    foreign key (tenant_id, user_id) references users on delete cascade
);

create table buckets (
    tenant_id   uuid not null,
    user_id     bigint not null,
    id          bigint not null generated always as identity,
    name        text not null,
    description text not null default '',
    is_default  boolean not null default false,
    memories    bigint not null default 0 check (memories >= 0),
    created_at  timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create unique index buckets_name on buckets (tenant_id, user_id, lower(name));
create unique index buckets_default on buckets (tenant_id, user_id) where is_default;

create table memories (
    tenant_id  uuid not null,
    user_id    bigint not null,
    id         uuid not null,
    seq        bigint not null, -- from users.memory_seq in the writing transaction
    bucket_id  bigint not null,
    text       text not null,
    tokens     integer not null,
    source     text not null default '',
    version    integer not null default 1,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id, bucket_id) references buckets
);
create unique index memories_order on memories (tenant_id, user_id, seq);
create index memories_bucket_order on memories (tenant_id, user_id, bucket_id, seq);

create table memory_versions (
    tenant_id  uuid not null,
    user_id    bigint not null,
    memory_id  uuid not null,
    version    integer not null,
    text       text not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, user_id, memory_id, version),
    foreign key (tenant_id, user_id, memory_id) references memories on delete cascade
);

create table imports (
    tenant_id   uuid not null,
    user_id     bigint not null,
    id          uuid not null,
    platform    text not null,
    status      text not null check (status in ('queued', 'running', 'done', 'failed')),
    total       bigint not null default 0,
    imported    bigint not null default 0,
    updated     bigint not null default 0,
    skipped     bigint not null default 0,
    failed      bigint not null default 0,
    errors      jsonb not null default '[]', -- [{"conversation", "error"}]
    started_at  timestamptz not null default now(),
    finished_at timestamptz,
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);

create table conversations (
    tenant_id     uuid not null,
    user_id       bigint not null,
    id            uuid not null,
    external_id   text not null, -- its id on the platform
    platform      text not null,
    platform_name text not null default '',
    title         text not null default '',
    status        text not null check (status in ('active', 'excluded', 'blocked')),
    pinned        boolean not null default false,
    message_count integer not null default 0,
    token_count   bigint not null default 0,
    bytes         bigint not null default 0, -- of its messages' texts
    import_id     uuid not null,             -- the import that last changed it
    created_at    timestamptz not null,      -- when it happened
    updated_at    timestamptz not null,      -- its newest message
    imported_at   timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create unique index conversations_external on conversations (tenant_id, user_id, platform, external_id);
create index conversations_created on conversations (tenant_id, user_id, created_at desc);
-- Re-balancing looks across a tenant's users for the newest and the oldest.
create index conversations_balance on conversations (tenant_id, status, updated_at);

create table messages (
    tenant_id       uuid not null,
    user_id         bigint not null,
    conversation_id uuid not null,
    seq             integer not null, -- message_index, from 0
    external_id     text not null,
    sender          text not null check (sender in ('human', 'assistant', 'system', 'tool')),
    text            text not null,
    tokens          integer not null,
    created_at      timestamptz not null,
    primary key (tenant_id, user_id, conversation_id, seq),
    foreign key (tenant_id, user_id, conversation_id) references conversations on delete cascade
);
create unique index messages_external on messages (tenant_id, user_id, conversation_id, external_id);

-- A unit is a piece of text that is found as one. It never changes: an edit
-- makes new ones, so that the vector store never holds a stale entry.
create sequence unit_ids as bigint;
create table units (
    tenant_id       uuid not null,
    user_id         bigint not null,
    id              bigint not null default nextval('unit_ids'),
    kind            smallint not null check (kind in (1, 2)), -- 1 memory, 2 chat
    group_id        bigint not null,  -- a memory's bucket, a hash of a chat's platform
    memory_id       uuid,
    conversation_id uuid,
    seq             integer not null default 0, -- the message's
    span_start      integer not null, -- bytes into the text
    span_end        integer not null,
    active          boolean not null default true, -- false: of an excluded or blocked conversation
    tsv             tsvector not null,
    embedding       bytea,            -- half precision, little endian; null until there is one
    indexed_at      timestamptz,      -- when the vector store was last seen to hold it
    created_at      timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id, memory_id) references memories on delete cascade,
    foreign key (tenant_id, user_id, conversation_id) references conversations on delete cascade,
    check ((kind = 1) = (memory_id is not null) and (kind = 2) = (conversation_id is not null))
) partition by hash (user_id);
-- +goose StatementBegin
do $$
begin
    for i in 0..7 loop
        execute format('create table units_%s partition of units for values with (modulus 8, remainder %s)', i, i);
    end loop;
end $$;
-- +goose StatementEnd
create index units_memory_words on units using gin (user_id, tsv) with (gin_pending_list_limit = 128) where kind = 1 and active;
create index units_chat_words on units using gin (user_id, tsv) with (gin_pending_list_limit = 128) where kind = 2 and active;
create index units_kind on units (tenant_id, user_id, kind, id) where active;
create index units_memory on units (tenant_id, user_id, memory_id) where memory_id is not null;
create index units_conversation on units (tenant_id, user_id, conversation_id, seq) where conversation_id is not null;
create index units_unindexed on units (tenant_id, user_id, kind, id) where active and indexed_at is null;
create index units_just_indexed on units (tenant_id, user_id, kind, indexed_at) where active and indexed_at is not null;

-- +goose Down
drop table units, messages, conversations, imports, memory_versions, memories, buckets, tokens, users, placements, usage, quotas, tenants;
drop sequence unit_ids;
