-- The tables, by noun. Functions, views, policies and triggers are in ../repeatable, and ../schema.sql has the result
-- of both.
--
-- Two roles: the owner (runs `mnemo migrate`) and the application role (serve and operator). The application role
-- cannot change the schema and is subject to row-level security; Migrate grants it access to rows.
--
-- Every table of user data starts its key with (tenant_id, user_id) and is listed in ../repeatable/policies.sql. Other
-- tables hold no user data, or are read before there is a scope (tenants, users, tokens, sessions).

-- +goose Up
create extension if not exists btree_gin;

----------------------------------------------------------------------------
-- This database
----------------------------------------------------------------------------

create table schema_oldest (version bigint not null);
create unique index on schema_oldest ((true)); -- at most one row
insert into schema_oldest values (0);
comment on table schema_oldest is
    'The oldest schema version that a binary may be built for and still run on this database';

create table schema_files (
    path       text not null,
    checksum   text not null, -- SHA-256, hexadecimal
    applied_at timestamptz not null default clock_timestamp(),
    primary key (path, checksum)
);
comment on table schema_files is
    'Every version of the repeatable files that was applied to this database. The latest of each path is current';

create table database_cell (cell smallint not null check (cell between 0 and 4095));
create unique index on database_cell ((true)); -- at most one row
comment on table database_cell is
    'The number of this database, set by the first migration. It determines the ranges of the sequences';

----------------------------------------------------------------------------
-- Tenants
----------------------------------------------------------------------------

create table tenants (
    id              uuid primary key,     -- UID of the Tenant resource that created it
    resource        uuid not null unique, -- UID of the current Tenant resource; differs from id after an adoption
    cluster         text not null,        -- UID of the kube-system namespace of the resource's cluster
    namespace       text not null,
    name            text not null,
    display_name    text not null default '',
    state           text not null default 'active' check (state in ('active', 'retained', 'purging')),
    suspended       boolean not null default false,
    deletion_policy text not null default 'Retain' check (deletion_policy in ('Retain', 'Delete')),
    isolation       text not null default 'Partition' check (isolation in ('Partition', 'Shared')),
    token_overlap   interval not null default '0', -- validity of a token after its replacement
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    retired_at      timestamptz,          -- when the Tenant resource was deleted
    namespace_uid   text,                 -- null until the Tenant is reconciled
    administrators  text[] not null default '{}',
    -- Where the tenant requests to be placed: in a cell, in a cell of a region, or, if both are empty, in the default cell.
    cell            text not null default '',
    region          text not null default '',
    outgrown_at     timestamptz           -- when a user first had more units than PostgreSQL is to score alone
);
create unique index tenants_name on tenants (cluster, namespace, name);
-- Sign-in names do not include the cluster.
create index tenants_sign_in on tenants (namespace, name);
comment on table tenants is 'One row per tenant, including retained tenants whose resource is deleted';
comment on column tenants.namespace_uid is 'UID of the Namespace whose Tenants may adopt the data once it is retained';
comment on column tenants.administrators is
    'Names of listed users, and e-mail addresses in lower case of users of an identity provider';

create table oidc_domains (
    issuer    text not null,
    domain    text not null, -- lower case
    tenant_id uuid not null references tenants on delete cascade,
    primary key (issuer, domain)
);
create index oidc_domains_tenant on oidc_domains (tenant_id);
comment on table oidc_domains is 'The tenant of each e-mail domain, per identity provider';

create table removed_users (
    tenant_id     uuid not null references tenants on delete cascade,
    email         text not null,    -- lower case
    administrator boolean not null, -- by `mnemo users remove`; otherwise by the Tenant resource
    removed_at    timestamptz not null default now(),
    primary key (tenant_id, email, administrator)
);
comment on table removed_users is 'Addresses whose users of the identity provider have no access to the tenant';

----------------------------------------------------------------------------
-- Quotas and usage
----------------------------------------------------------------------------

create table quotas (
    tenant_id           uuid primary key references tenants on delete cascade,
    memories            bigint not null,
    conversations       bigint not null,
    storage             bigint not null, -- bytes
    users               bigint not null,
    requests_per_minute bigint not null,
    page_tokens         bigint not null,
    user_memories       bigint not null,
    user_conversations  bigint not null
);
comment on table quotas is 'The limits of each tenant, copied from its resource';

create table usage (
    tenant_id         uuid primary key references tenants on delete cascade,
    memories          bigint not null default 0 check (memories >= 0),
    conversations     bigint not null default 0 check (conversations >= 0),     -- active ones
    blocked           bigint not null default 0 check (blocked >= 0),           -- conversations over quota
    storage           bigint not null default 0 check (storage >= 0),           -- bytes
    application_users bigint not null default 0 check (application_users >= 0), -- a tenant may have a hundred thousand
    embedded_tokens   bigint not null default 0,
    metered_on        date not null default (now() at time zone 'utc')::date
);
comment on table usage is 'The consumption of each tenant. Writers lock this row first, then the row in users';
comment on column usage.metered_on is 'The day in UTC of the last change of storage or embedded_tokens';

-- Metering for billing (docs/adr/0023-metering.md).
create table usage_days (
    tenant_id uuid not null, -- not a reference: the usage outlives the tenant
    day       date not null, -- in UTC
    requests  bigint not null default 0,
    changes   bigint not null default 0,
    storage   bigint, -- bytes at the end of the day; null if the row in usage did not change on this day
    embedded  bigint, -- tokens since the tenant was created, at the end of the day; null like storage
    primary key (tenant_id, day)
);
comment on table usage_days is 'Usage of each tenant and day, without users';

create table usage_reports (
    id          uuid primary key, -- of a journal of requests
    reported_at timestamptz not null default now()
);
create index usage_reports_age on usage_reports (reported_at);
comment on table usage_reports is 'Journals that are counted in usage_days, so that none is counted twice';

-- What is counted after a day was exported belongs to the next day.
create table usage_exports (
    singleton boolean primary key default true check (singleton),
    closed    date not null -- the latest exported day
);
comment on table usage_exports is 'The latest day whose usage was exported and does not change any more';
insert into usage_exports (closed) values ('epoch');

create unlogged table rate_windows (
    tenant_id uuid primary key references tenants on delete cascade,
    minute    timestamptz not null,
    used      bigint not null, -- permits taken in this minute
    granted   bigint not null  -- permits granted to the last caller
) with (fillfactor = 50);
comment on table rate_windows is
    'Requests per tenant in its latest minute. Replicas take permits in blocks. Unlogged: a crash loses at most one minute of counts';

----------------------------------------------------------------------------
-- Users and applications
--
-- An application (docs/adr/0022-application-users.md) has a row in users, which holds its keys (tokens) like those of a
-- user, with the same revocation and erasure records. It owns no data. The users that it acts for are rows of a kind of
-- their own: the operator does not list them, and their names cannot be those of other users.
----------------------------------------------------------------------------

create table users (
    tenant_id         uuid not null references tenants on delete cascade,
    id                bigint not null generated always as identity unique,
    name              text not null,
    email             text not null default '',
    issuer            text, -- issuer and subject identify a user of an identity provider
    subject           text,
    active            boolean not null default true, -- false: not in the Tenant resource, no access
    purging           boolean not null default false, -- a job is deleting the user's data
    password_hash     bytea,
    memory_seq        bigint not null default 0,     -- orders the user's writes
    memories          bigint not null default 0 check (memories >= 0),
    conversations     bigint not null default 0 check (conversations >= 0), -- active ones
    created_at        timestamptz not null default now(),
    audit_id          uuid not null default gen_random_uuid(), -- the pseudonym in audit records; deleted with the user
    kind              text not null default 'user' check (kind in ('user', 'application', 'application_user')),
    password_replaced boolean not null default false,
    primary key (tenant_id, id),
    unique (tenant_id, name),
    constraint users_external_check check ((issuer is null) = (subject is null))
);
create unique index users_external on users (tenant_id, issuer, subject) where issuer is not null;
create index users_managed on users (tenant_id) where kind <> 'application_user';
-- Listings of application users by name. The index of unique names also serves them, but without statistics PostgreSQL
-- expects one row, reads all names that follow, a hundred thousand, and sorts them for each page.
create index users_of_applications on users (tenant_id, name) where kind = 'application_user' and active;
-- A delivery of a webhook looks up the users of its audit records.
create index users_audit on users (tenant_id, audit_id);
comment on table users is 'Users of a tenant: those in its resource, and those who signed in with an identity provider';
comment on column users.kind is
    'user: in the Tenant resource or of an identity provider; application: holds the keys of an application; application_user: created by an application';
comment on column users.password_replaced is 'The user created the password; false again when the operator issues one';

create table applications (
    tenant_id           uuid not null,
    user_id             bigint not null,
    scopes              text[] not null,
    allowed_origins     text[] not null default '{}',
    requests_per_minute bigint not null,
    primary key (tenant_id, user_id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
comment on table applications is 'Settings of the applications of each tenant, copied from its resource';

create unlogged table application_rate_windows (
    user_id bigint primary key references users (id) on delete cascade,
    minute  timestamptz not null,
    used    bigint not null, -- permits taken in this minute
    granted bigint not null  -- permits granted to the last caller
) with (fillfactor = 50);
comment on table application_rate_windows is 'rate_windows for each application with a rate of its own';

----------------------------------------------------------------------------
-- Access: tokens, sessions, OAuth
----------------------------------------------------------------------------

create table tokens (
    tenant_id    uuid not null,
    user_id      bigint not null,
    generation   bigint not null,
    hash         bytea not null unique,
    issuer       text not null check (issuer in ('operator', 'user')),
    created_at   timestamptz not null default now(),
    expires_at   timestamptz, -- set when a newer token replaces it; in the past if revoked
    last_used_at timestamptz,
    primary key (tenant_id, user_id, generation),
    foreign key (tenant_id, user_id) references users on delete cascade
);
comment on table tokens is 'API tokens, by hash';

-- In addition to the one in tokens (docs/tokens.md).
create table user_tokens (
    tenant_id     uuid not null,
    user_id       bigint not null,
    id            uuid not null default gen_random_uuid(),
    hash          bytea not null unique,
    name          text not null,
    scopes        text[] not null,
    password_hash bytea, -- the token ends when the user's differs; null for an identity provider
    created_at    timestamptz not null default now(),
    expires_at    timestamptz, -- in the past if revoked
    last_used_at  timestamptz, -- accurate to a minute
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
comment on table user_tokens is 'Named API tokens that users created, by hash';

-- The secret of a one-time sign-in link (docs/security.md) is also a row: it ends with the password, the user and the
-- tenant, and has erasure records, as a session has.
create table sessions (
    hash             bytea primary key,
    tenant_id        uuid not null,
    user_id          bigint not null,
    password_hash    bytea, -- the session ends when the user's differs; null for an identity provider
    created_at       timestamptz not null default now(),
    expires_at       timestamptz not null,
    authenticated_at timestamptz,
    one_time         boolean not null default false,
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index sessions_user on sessions (tenant_id, user_id);
create index sessions_expiry on sessions (expires_at);
comment on table sessions is 'Dashboard sessions, by the hash of the cookie';
comment on column sessions.authenticated_at is
    'When the user last proved their identity. Null if the identity provider does not tell';
comment on column sessions.one_time is 'The secret is that of a one-time sign-in link, not of a cookie';

create table platform_sessions (
    hash       bytea primary key,
    issuer     text not null, -- issuer and subject identify the administrator
    subject    text not null,
    email      text not null,
    expires_at timestamptz not null
);
comment on table platform_sessions is
    'Sessions of platform administrators. They belong to no tenant and give no access to its data';

create unlogged table sign_in_attempts (
    key      bytea primary key,
    began_at timestamptz not null, -- the first attempt of the window
    attempts bigint not null
) with (fillfactor = 50);
create index sign_in_attempts_age on sign_in_attempts (began_at);
comment on table sign_in_attempts is
    'Failed sign-ins per account and per address, by hash. Unlogged: a crash resets the counts';

create table oauth_clients (
    id            text primary key,
    name          text not null, -- as registered by the client, not verified
    redirect_uris text[] not null,
    created_at    timestamptz not null default now(),
    used_at       timestamptz    -- last grant, to the day; null if never
);
create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;
create index oauth_clients_used on oauth_clients (used_at) where used_at is not null;
comment on table oauth_clients is
    'Self-registered OAuth 2.1 clients. A client belongs to no tenant: its users may be of several';

create table oauth_grants (
    tenant_id     uuid not null,
    user_id       bigint not null,
    id            uuid not null default gen_random_uuid(),
    client_id     text not null references oauth_clients on delete cascade,
    password_hash bytea, -- the grant ends when the user's differs; null for an identity provider
    redirect_uri  text not null,
    challenge     text not null, -- PKCE, S256
    created_at    timestamptz not null default now(),
    refreshed_at  timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index oauth_grants_client on oauth_grants (client_id);
comment on table oauth_grants is 'The access that users granted to OAuth clients';

create table oauth_secrets (
    hash       bytea primary key,
    tenant_id  uuid not null,
    user_id    bigint not null,
    grant_id   uuid not null,
    kind       text not null check (kind in ('code', 'access', 'refresh')),
    used       boolean not null default false, -- kept to detect reuse, which revokes the grant
    expires_at timestamptz not null,
    foreign key (tenant_id, user_id, grant_id) references oauth_grants on delete cascade
);
create index oauth_secrets_grant on oauth_secrets (tenant_id, user_id, grant_id);
comment on table oauth_secrets is 'Authorization codes, access tokens and refresh tokens of a grant, by hash';

create table idempotency_keys (
    tenant_id  uuid not null,
    user_id    bigint not null,
    route      text not null,  -- the operation, such as memory
    key        bytea not null, -- SHA-256 of the client's key
    body       bytea not null, -- SHA-256 of the request body
    answer     jsonb,          -- null only within its transaction
    created_at timestamptz not null default now(),
    primary key (tenant_id, user_id, route, key),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index idempotency_keys_age on idempotency_keys (tenant_id, user_id, created_at);
comment on table idempotency_keys is
    'Responses for retried requests, written in the transaction of the request. They contain ids, numbers and hashes, never text';

----------------------------------------------------------------------------
-- Memories
----------------------------------------------------------------------------

create table buckets (
    tenant_id   uuid not null,
    user_id     bigint not null,
    id          bigint not null generated always as identity,
    name        text not null,
    name_key    text not null, -- the name folded by the server; lower() handles neither composition nor all foldings
    description text not null default '',
    is_default  boolean not null default false,
    memories    bigint not null default 0 check (memories >= 0),
    created_at  timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create unique index buckets_name_key on buckets (tenant_id, user_id, name_key);
create unique index buckets_default on buckets (tenant_id, user_id) where is_default;
comment on table buckets is 'Named groups of memories';

create table memories (
    tenant_id       uuid not null,
    user_id         bigint not null,
    id              uuid not null,
    seq             bigint not null, -- users.memory_seq of the writing transaction
    bucket_id       bigint not null,
    text            text not null,
    tokens          integer not null,
    source          text not null default '',
    version         integer not null default 1,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    -- Not a reference: reads ignore a link to a deleted memory, and a restore may write either first.
    superseded_by   uuid,
    superseded_at   timestamptz,
    agent_id        text not null default '', -- '' for none
    run_id          text not null default '', -- '' for none
    tags            text[] not null default '{}', -- sorted, without duplicates
    metadata        jsonb not null default '{}',
    attribute_bytes integer not null default 0, -- what the four columns above count towards the storage quota
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id, bucket_id) references buckets
);
create unique index memories_order on memories (tenant_id, user_id, seq);
create index memories_bucket_order on memories (tenant_id, user_id, bucket_id, seq);
create index memories_superseded_by on memories (tenant_id, user_id, superseded_by) where superseded_by is not null;
-- The mem0 API names a memory without its user: an application's key finds the owner by this index.
create index memories_id on memories (tenant_id, id);
-- For memories_with_text.
create index memories_text_hash on memories using hash (hashtextextended(text, user_id));
comment on table memories is 'The current version of each memory';
comment on column memories.superseded_by is 'The newer memory that replaces this one; both are kept';
comment on column memories.superseded_at is 'When the link was recorded';

-- The trigger delete_parts deletes versions, and the units of memories and conversations
-- (docs/adr/0027-deletion-by-trigger.md).
create table memory_versions (
    tenant_id  uuid not null,
    user_id    bigint not null,
    memory_id  uuid not null,
    version    integer not null,
    text       text not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, user_id, memory_id, version)
);
comment on table memory_versions is 'Every version of each memory, including the current one';

-- A merged memory (docs/adr/0029-merged-memories.md) is a row here instead of in memories, so that no query of memories
-- can return it. Its versions stay in memory_versions and count towards the quota, as does the memory. Its units are
-- deleted, and created again when it is restored.
create table merged_memories (
    -- The columns of memories.
    tenant_id       uuid not null,
    user_id         bigint not null,
    id              uuid not null,
    seq             bigint not null,
    bucket_id       bigint not null, -- may be deleted: a restored memory is then in the default bucket
    text            text not null,
    tokens          integer not null,
    source          text not null,
    version         integer not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    superseded_by   uuid,
    superseded_at   timestamptz,
    agent_id        text not null,
    run_id          text not null,
    tags            text[] not null,
    metadata        jsonb not null,
    attribute_bytes integer not null,

    merged_into     uuid not null, -- the memory that was kept, which may itself be merged later
    merged_at       timestamptz not null,
    relinked        uuid[] not null default '{}', -- memories that it superseded, and that merged_into supersedes since
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index merged_memories_into on merged_memories (tenant_id, user_id, merged_into);
comment on table merged_memories is 'Memories that were merged into another one';

-- The facts are saved before they are stored as memories, so that a retried job does not store them twice
-- (docs/connect/mem0.md).
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
create index extractions_finished on extractions (tenant_id, finished_at);
comment on table extractions is 'Messages until facts are extracted from them, and the outcome';

----------------------------------------------------------------------------
-- Conversations
----------------------------------------------------------------------------

create table conversations (
    tenant_id     uuid not null,
    user_id       bigint not null,
    id            uuid not null,
    external_id   text not null, -- id on the platform
    platform      text not null,
    platform_name text not null default '',
    title         text not null default '',
    status        text not null check (status in ('active', 'excluded', 'blocked')),
    pinned        boolean not null default false,
    message_count integer not null default 0,
    token_count   bigint not null default 0,
    bytes         bigint not null default 0, -- of the messages' text
    import_id     uuid not null,             -- the latest import that changed it
    created_at    timestamptz not null,      -- on the platform
    updated_at    timestamptz not null,      -- of the newest message
    imported_at   timestamptz not null default now(),
    exported_at   timestamptz,
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create unique index conversations_external on conversations (tenant_id, user_id, platform, external_id);
create index conversations_created on conversations (tenant_id, user_id, created_at desc);
create index conversations_import on conversations (tenant_id, user_id, import_id);
-- Rebalancing compares conversations of all users of a tenant.
create index conversations_balance on conversations (tenant_id, status, updated_at);
-- The blocked conversations of a user, newest first: those that become active when the user deletes others.
create index conversations_blocked on conversations (tenant_id, user_id, updated_at, id) where status = 'blocked';
comment on table conversations is 'Imported conversations. Only active ones are searchable and count against the quota';
comment on column conversations.exported_at is 'Update time in the newest imported export. Null if there is none';

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
    exported        boolean not null default false,
    primary key (tenant_id, user_id, conversation_id, seq),
    foreign key (tenant_id, user_id, conversation_id) references conversations on delete cascade
);
create unique index messages_external on messages (tenant_id, user_id, conversation_id, external_id);
-- While a table has no statistics, PostgreSQL prefers its smallest index, and read all messages of a user for each
-- unit. Only a statement that compares times fulfills the condition, which is true for every message.
create index messages_created on messages (tenant_id, user_id, created_at) where created_at is not null;
comment on table messages is 'Messages of conversations';
comment on column messages.exported is
    'Part of the newest imported export. A newer export removes the message if it lacks it';

----------------------------------------------------------------------------
-- Imports
----------------------------------------------------------------------------

create table imports (
    tenant_id    uuid not null,
    user_id      bigint not null,
    id           uuid not null,
    kind         text not null default 'online' check (kind in ('online', 'file')),
    platform     text not null,
    requested_platform text not null default '', -- the platform that the user selected
    status       text not null check (status in ('uploading', 'queued', 'running', 'done', 'failed')),
    failure      text not null default '',      -- why the whole import failed
    version      bigint not null default 0,     -- incremented with every visible change
    size         bigint not null default 0,     -- of the file, bytes
    total        bigint not null default 0,
    imported     bigint not null default 0,
    updated      bigint not null default 0,
    skipped      bigint not null default 0,
    unchanged    bigint not null default 0,     -- part of skipped
    failed       bigint not null default 0,
    indexed      bigint not null default 0,     -- conversations with all units embedded
    errors       jsonb not null default '[]',   -- [{"conversation", "error"}]
    warnings     jsonb not null default '[]',
    notes        jsonb not null default '{}',   -- counters of the file's reader
    stored       boolean not null default true, -- false: its conversations remain blocked
    attempts     integer not null default 0,    -- attempts since the last progress
    worker       uuid,                          -- the worker that holds the lease
    leased_until timestamptz,
    started_at   timestamptz not null default now(),
    finished_at  timestamptz,
    chunk_bytes  bigint not null default 0 check (chunk_bytes >= 0), -- of the file, in import_chunks
    file         text not null default '',      -- name of the file, without its path; empty if it is unknown
    -- The workers since the last progress that ended without releasing the import: its file may be what ended them.
    killed       smallint not null default 0,
    skip_invalid boolean not null default false, -- omit invalid lines of a Mnemo export instead of rejecting the file
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index imports_files on imports (tenant_id, user_id, id) where kind = 'file';
create index imports_unstored on imports (tenant_id) where not stored;
-- For upload_bytes, which runs with every chunk of a file. Without chunk_bytes, so that adding to it does not update
-- the index.
create index imports_unfinished on imports (tenant_id, user_id) where status in ('uploading', 'queued', 'running');
comment on table imports is 'Imports of conversations: of an uploaded file, or online (one per request)';

create table import_chunks (
    tenant_id uuid not null,
    user_id   bigint not null,
    import_id uuid not null,
    n         integer not null, -- from 0; all but the last have the same size
    data      bytea not null,
    primary key (tenant_id, user_id, import_id, n),
    foreign key (tenant_id, user_id, import_id) references imports on delete cascade
);
alter table import_chunks alter column data set storage external; -- exports are already compressed
comment on table import_chunks is 'The content of an uploaded file until the import has finished';

create table import_ledger (
    tenant_id       uuid not null,
    user_id         bigint not null,
    import_id       uuid not null,
    ordinal         integer not null, -- position in the file, from 0
    outcome         text not null check (outcome in ('imported', 'updated', 'unchanged', 'skipped', 'failed')),
    conversation_id uuid,             -- null if nothing was stored
    reason          text not null default '', -- why it was skipped or failed
    indexed         boolean not null default false,
    primary key (tenant_id, user_id, import_id, ordinal),
    foreign key (tenant_id, user_id, import_id) references imports on delete cascade
);
create index import_ledger_open on import_ledger (tenant_id, user_id, import_id) where not indexed;
comment on table import_ledger is 'The outcome of each conversation in a file, so that an interrupted import resumes';

----------------------------------------------------------------------------
-- Units: the pieces of text that search returns
----------------------------------------------------------------------------

create sequence unit_ids as bigint;

create table units (
    tenant_id          uuid not null,
    user_id            bigint not null,
    id                 bigint not null default nextval('unit_ids'),
    kind               smallint not null check (kind in (1, 2)), -- 1 memory, 2 chat
    group_id           bigint not null,  -- the bucket of a memory, a hash of a chat's platform
    memory_id          uuid,
    conversation_id    uuid,
    seq                integer not null default 0, -- of the message
    span_start         integer not null, -- byte offsets into the text
    span_end           integer not null,
    active             boolean not null default true, -- false if the conversation is excluded or blocked
    tsv                tsvector not null,
    embedding          bytea,            -- half precision, little endian; null until embedded
    indexed_at         timestamptz,      -- when the vector store was last seen to contain it
    created_at         timestamptz not null default now(),
    -- A unit has two vectors while its tenant migrates to another generation.
    generation_id      smallint default 1, -- of embedding
    next_embedding     bytea,
    next_generation_id smallint,           -- of next_embedding
    -- The text of a unit of a long message (longMessage in message_units.go), so that reading the unit does not read the
    -- whole message, which may have megabytes. Null for others.
    piece              text,
    primary key (tenant_id, user_id, id),
    check ((kind = 1) = (memory_id is not null) and (kind = 2) = (conversation_id is not null))
) partition by hash (user_id);
comment on table units is
    'Pieces of memories and messages, as indexed. Immutable: an edit creates new units, so the vector store never has a stale entry';

-- The toast target keeps tsv and embedding in the row, uncompressed, up to a page: ranking reads tsv of thousands of
-- units several times.
-- +goose StatementBegin
do $$
begin
    for i in 0..7 loop
        execute format('create table units_%s partition of units for values with (modulus 8, remainder %s)', i, i);
        execute format('alter table units_%s set (toast_tuple_target = 8160)', i);
    end loop;
end $$;
-- +goose StatementEnd

create index units_memory_words on units using gin (user_id, tsv) with (gin_pending_list_limit = 128) where kind = 1 and active;
-- A pending list of 512 KiB instead of 128 saves a quarter of PostgreSQL's processor time per message, and adds about 1
-- ms to a search for words among 20,000 units.
create index units_chat_words on units using gin (user_id, tsv) with (gin_pending_list_limit = 512) where kind = 2 and active;
create index units_kind on units (tenant_id, user_id, kind, id) where active;
create index units_memory on units (tenant_id, user_id, memory_id) where memory_id is not null;
create index units_conversation on units (tenant_id, user_id, conversation_id, seq) where conversation_id is not null;
create index units_unindexed on units (tenant_id, user_id, kind, id) where active and indexed_at is null;
create index units_just_indexed on units (tenant_id, user_id, kind, indexed_at) where active and indexed_at is not null;
-- Jobs select units by tenant and id, regardless of the user.
create index units_id on units (tenant_id, id);

----------------------------------------------------------------------------
-- Vector stores: where the vectors of tenants are, and of which model
----------------------------------------------------------------------------

create table cells (
    name        text primary key,
    region      text not null default '',
    max_tenants bigint not null default 0, -- 0: no limit
    max_units   bigint not null default 0,
    cordoned    boolean not null default false
);
comment on table cells is
    'Vector stores other than the default one. The operator writes them from the Cell resources; connections are not stored';

create table tenant_units (
    tenant_id  uuid primary key references tenants on delete cascade,
    units      bigint not null,
    counted_at timestamptz not null default now()
);
comment on table tenant_units is
    'Number of active units of each tenant in a cell, counted once an hour for its capacity';

create table embedding_generations (
    id          smallint primary key generated always as identity,
    name        text not null unique, -- the prefix of the names of its collections in the vector store
    model       text,                 -- null until a server with this name and length starts
    revision    text not null default '', -- checksum of the model's file, or set by the administrator
    settings    text not null default '', -- how texts become vectors: prefixes, pooling
    dimensions  integer not null,
    active      boolean not null default false, -- new tenants use this one
    fingerprint bytea, -- the vector of a fixed text: another one means that the endpoint's model was replaced
    created_at  timestamptz not null default now()
);
create unique index embedding_generations_active on embedding_generations (active) where active;
comment on table embedding_generations is
    'The embedding models whose vectors are stored. Vectors of two generations are not comparable';

-- A location is in a cell; '' is the default one. Names of partitions are assigned once in all cells, so the unique
-- keys of locations do not need it.
create table placements (
    tenant_id    uuid primary key references tenants on delete cascade,
    generation   text not null, -- embedding model and dimensions
    collection   text not null,
    partition    text not null, -- if shared, a value of the partition key
    shared       boolean not null default false,
    partition_id bigint not null default 0, -- assigned by the vector store; another id means that the partition was lost
    cell         text not null default '',
    unique (collection, partition)
);
comment on table placements is 'Where the vectors of each tenant are stored';

-- Numbers the partitions of a tenant after the first, and migration runs.
create sequence placement_ids as bigint;

create table placement_migrations (
    tenant_id    uuid primary key references tenants on delete cascade,
    generation   text not null,
    collection   text not null, -- the target; equal to the placement after its partition was lost
    partition    text not null,
    shared       boolean not null,
    partition_id bigint not null, -- 0 until the vector store has created the target
    run          bigint not null default nextval('placement_ids'), -- identifies the job; a later run replaces it
    cursor       bigint not null default 0, -- the last unit copied
    heartbeat_at timestamptz not null default now(),
    started_at   timestamptz not null default now(),
    cell         text not null default '',
    unique (collection, partition)
);
comment on table placement_migrations is
    'Copies of a tenant''s units into a partition: the lost partition of its placement, or the target of a migration';

-- Migrations of all tenants to another model (docs/adr/0020-embedding-generations.md).
create table embedding_migrations (
    id             bigint primary key generated always as identity,
    target_id      smallint not null references embedding_generations,
    phase          text not null default 'copying'
                   check (phase in ('copying', 'canary', 'completing', 'rolling back', 'completed', 'rolled back')),
    reason         text not null default '', -- why it is rolled back
    canary_percent integer not null check (canary_percent between 0 and 100), -- users served with the target during the canary
    canary_seconds bigint not null check (canary_seconds >= 0),
    rate           integer not null check (rate >= 0), -- texts per second; 0 without a limit
    forced         boolean not null default false,     -- complete it even if the target finds less
    probes         integer not null default 0,         -- comparisons behind the scores
    source_score   float8 not null default 0,          -- shares of the probes that find their text
    target_score   float8 not null default 0,
    started_at     timestamptz not null default now(),
    phase_at       timestamptz not null default now(), -- when the phase began
    heartbeat_at   timestamptz not null default now(), -- the latest progress
    finished_at    timestamptz
);
create unique index embedding_migrations_unfinished on embedding_migrations ((true)) where finished_at is null; -- at most one
comment on table embedding_migrations is
    'Migrations to another embedding generation. One state machine, driven by a job';

create table embedding_targets (
    tenant_id    uuid primary key references tenants on delete cascade,
    generation   text not null,
    collection   text not null,
    partition    text not null,
    shared       boolean not null,
    partition_id bigint not null default 0, -- 0 until the vector store has created it
    cursor       bigint not null default 0, -- the last unit copied
    state        text not null default 'copying' check (state in ('copying', 'ready', 'cleaning')),
    cell         text not null default '',
    unique (collection, partition)
);
comment on table embedding_targets is
    'The placement of each tenant in the generation it migrates to. Cleaning: the tenant has migrated or stayed, and its other vectors are being deleted';

create table index_sweeps (
    tenant_id      uuid primary key references tenants on delete cascade,
    began_at       timestamptz not null, -- the latest attempt: tenants are swept oldest first
    cursor         bigint not null default 0, -- the last unit compared, 0 between sweeps
    swept_at       timestamptz not null, -- the latest complete sweep, or the creation of the tenant
    drifted        boolean not null default false,
    drifted_sweeps integer not null default 0
);
comment on table index_sweeps is
    'The progress of the sweep that compares the vector index with the database. A tenant without a row was never swept';
comment on column index_sweeps.drifted is 'The unfinished sweep has found drift';
comment on column index_sweeps.drifted_sweeps is 'Consecutive complete sweeps that found drift, up to the latest';

----------------------------------------------------------------------------
-- Deletions and erasures (docs/adr/0015-erasure-ledger.md)
----------------------------------------------------------------------------

-- For 10 seconds, the rows of a memory or conversation that was deleted in the dashboard are kept here. A job deletes
-- them, and nothing else reads them.
create table deletions (
    tenant_id  uuid not null,
    user_id    bigint not null,
    id         uuid not null, -- of the deletion: an undo restores all of its objects
    object     uuid not null, -- the memory or conversation
    kind       text not null check (kind in ('memory', 'conversation')),
    content    jsonb not null, -- its rows, by table
    expires_at timestamptz not null,
    primary key (tenant_id, user_id, id, object),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index deletions_expiry on deletions (tenant_id, expires_at);
comment on table deletions is 'Rows of deleted memories and conversations while the deletion can be undone';

create table erasures (
    id        uuid primary key default gen_random_uuid(),
    kind      text not null check (kind in ('tenant', 'user', 'access', 'account', 'conversation', 'memory', 'bucket',
                                            'token', 'password', 'session', 'grant', 'secret')),
    tenant_id uuid not null, -- not a reference: the record outlives the tenant
    user_id   bigint not null default 0, -- 0 if the kind or the objects identify the rows
    objects   text[] not null default '{}', -- ids, or hashes in hexadecimal
    until     timestamptz, -- when a revoked token expires
    at        timestamptz not null default clock_timestamp()
);
create index erasures_at on erasures (at);
comment on table erasures is 'Erasures and revocations that are not in the erasure ledger yet';

create table erasure_ledger (
    ledger   uuid,                      -- the ledger in use; null before the first
    position bigint not null default 0, -- the last entry of the ledger that this database reflects
    database text not null default ''   -- identifies this database; another value means that it was restored
);
create unique index on erasure_ledger ((true)); -- one row
insert into erasure_ledger default values;
comment on table erasure_ledger is 'The erasure ledger that was last applied to this database';

----------------------------------------------------------------------------
-- The audit log (docs/adr/0019-audit-log.md)
--
-- audit_append writes a record in the transaction of the change, without a lock. A background process then seals it: it
-- assigns the next number of the tenant's chain and the hash, and moves the record from audit_pending to audit_records.
-- The application role can neither write pending records except through audit_append nor change sealed ones.
----------------------------------------------------------------------------

create table audit_pending (
    id          bigint generated always as identity primary key,
    tenant_id   uuid not null, -- not a reference: records outlive the tenant
    subject     uuid,          -- users.audit_id of the user whose data changed; null for the tenant
    at          timestamptz not null default clock_timestamp(),
    actor       text not null check (actor in ('user', 'application', 'operator', 'administrator', 'system')),
    via         text not null, -- credential, command or kind of job
    fingerprint text not null, -- of the credential
    app         text not null, -- client id of a connected app
    verb        text not null,
    objects     text[] not null
);
create index audit_pending_tenant on audit_pending (tenant_id, id);
-- A deletion of 1,000 memories writes records of 4 KB, which are moved to audit_records soon. They are not compressed
-- before.
alter table audit_pending set (toast_tuple_target = 8160);
comment on table audit_pending is 'Audit records that are not sealed yet';

create table audit_records (
    tenant_id   uuid not null,
    seq         bigint not null, -- in the chain of the tenant, from 1
    prev        bytea not null,  -- hash of the preceding record, which may be another user's
    hash        bytea not null,  -- of this record with prev
    subject     uuid,
    at          timestamptz not null,
    actor       text not null,
    via         text not null,
    fingerprint text not null,
    app         text not null,
    verb        text not null,
    objects     text[] not null,
    primary key (tenant_id, seq)
);
create index audit_records_subject on audit_records (tenant_id, subject, seq);
create index audit_records_age on audit_records (tenant_id, at);
comment on table audit_records is
    'Sealed audit records: a hash chain per tenant. They contain ids and fingerprints, never content or secrets';

create table audit_chains (
    tenant_id uuid primary key, -- not a reference: the chain outlives the tenant
    seq       bigint not null default 0, -- of the last sealed record
    hash      bytea not null default ''
);
comment on table audit_chains is 'The end of each tenant''s chain of audit records';

----------------------------------------------------------------------------
-- Webhooks (docs/adr/0024-webhooks.md): the audit log is their outbox, so a webhook only needs a position in it
----------------------------------------------------------------------------

create table webhooks (
    tenant_id       uuid not null references tenants on delete cascade,
    name            text not null,
    url             text not null,
    events          text[] not null,
    secret          text not null, -- to sign with, so it cannot be a hash
    previous_secret text not null default '', -- signs as well until previous_until
    previous_until  timestamptz not null default 'epoch',
    position        bigint not null, -- the record before the next event
    attempts        integer not null default 0, -- failed ones of the next event
    due_at          timestamptz not null default now(), -- of the next attempt, or the end of the claim of a job
    failing_since   timestamptz,
    disabled        boolean not null default false,
    skipped         bigint not null default 0, -- events that the endpoint refused
    message         text not null default '', -- of the last failure
    created_at      timestamptz not null default now(),
    declared        boolean not null default false, -- by the Tenant; the command line does not change it
    primary key (tenant_id, name)
);
comment on table webhooks is 'Endpoints of each tenant, their signing secrets and their position in the audit log';
