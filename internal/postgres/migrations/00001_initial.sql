-- The initial schema.
--
-- Two roles: the owner (runs `mnemo migrate`) and the application role (serve
-- and operator). The application role cannot change the schema and is subject to
-- row-level security; Migrate grants it access to rows.
--
-- Every table of user data starts its key with (tenant_id, user_id) and has the
-- policy `scope`, see the end of this file. Tables without a policy hold no user
-- data, or are read before there is a scope (tenants, users, tokens, sessions).
--
-- Migrations after the first release only expand the schema: README.md in this
-- directory has the rule.

-- +goose Up
create extension if not exists btree_gin;

----------------------------------------------------------------------------
-- Schema version
----------------------------------------------------------------------------

create table schema_oldest (version bigint not null);
create unique index on schema_oldest ((true)); -- at most one row
insert into schema_oldest values (0);
comment on table schema_oldest is 'The oldest schema version that a binary may be built for and still run on this database';

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
    retired_at      timestamptz           -- when the Tenant resource was deleted
);
create unique index tenants_name on tenants (cluster, namespace, name);
-- Sign-in names do not include the cluster.
create index tenants_sign_in on tenants (namespace, name);
comment on table tenants is 'One row per tenant, including retained tenants whose resource is deleted';

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
comment on table quotas is 'The limits of each tenant, copied from its resource';

create table usage (
    tenant_id     uuid primary key references tenants on delete cascade,
    memories      bigint not null default 0 check (memories >= 0),
    conversations bigint not null default 0 check (conversations >= 0), -- active ones
    blocked       bigint not null default 0 check (blocked >= 0),       -- conversations over quota
    storage       bigint not null default 0 check (storage >= 0)        -- bytes
);
comment on table usage is 'The consumption of each tenant. Writers lock this row first, then the row in users';

create unlogged table rate_windows (
    tenant_id uuid primary key references tenants on delete cascade,
    minute    timestamptz not null,
    used      bigint not null, -- permits taken in this minute
    granted   bigint not null  -- permits granted to the last caller
) with (fillfactor = 50);
comment on table rate_windows is 'Requests per tenant in its latest minute. Replicas take permits in blocks. Unlogged: a crash loses at most one minute of counts';

create table placements (
    tenant_id    uuid primary key references tenants on delete cascade,
    generation   text not null, -- embedding model and dimensions
    collection   text not null,
    partition    text not null, -- if shared, a value of the partition key
    shared       boolean not null default false,
    partition_id bigint not null default 0, -- assigned by the vector store; another id means that the partition was lost
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
    unique (collection, partition)
);
comment on table placement_migrations is 'Copies of a tenant''s units into a partition: the lost partition of its placement, or the target of a migration';

----------------------------------------------------------------------------
-- Users and access
----------------------------------------------------------------------------

create table users (
    tenant_id     uuid not null references tenants on delete cascade,
    id            bigint not null generated always as identity unique,
    name          text not null,
    email         text not null default '',
    issuer        text, -- issuer and subject identify a user of an identity provider
    subject       text,
    active        boolean not null default true, -- false: not in the Tenant resource, no access
    purging       boolean not null default false, -- a job is deleting the user's data
    password_hash bytea,
    memory_seq    bigint not null default 0,     -- orders the user's writes
    memories      bigint not null default 0 check (memories >= 0),
    conversations bigint not null default 0 check (conversations >= 0), -- active ones
    created_at    timestamptz not null default now(),
    primary key (tenant_id, id),
    unique (tenant_id, name),
    constraint users_external_check check ((issuer is null) = (subject is null))
);
create unique index users_external on users (tenant_id, issuer, subject) where issuer is not null;
comment on table users is 'Users of a tenant: those in its resource, and those who signed in with an identity provider';

create table oidc_domains (
    issuer    text not null,
    domain    text not null, -- lower case
    tenant_id uuid not null references tenants on delete cascade,
    primary key (issuer, domain)
);
create index oidc_domains_tenant on oidc_domains (tenant_id);
comment on table oidc_domains is 'The tenant of each e-mail domain, per identity provider';

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

create table sessions (
    hash          bytea primary key,
    tenant_id     uuid not null,
    user_id       bigint not null,
    password_hash bytea, -- the session ends when the user's differs; null for an identity provider
    created_at    timestamptz not null default now(),
    expires_at    timestamptz not null,
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index sessions_user on sessions (tenant_id, user_id);
create index sessions_expiry on sessions (expires_at);
comment on table sessions is 'Dashboard sessions, by the hash of the cookie';

create unlogged table sign_in_attempts (
    key      bytea primary key,
    began_at timestamptz not null, -- the first attempt of the window
    attempts bigint not null
) with (fillfactor = 50);
create index sign_in_attempts_age on sign_in_attempts (began_at);
comment on table sign_in_attempts is 'Failed sign-ins per account and per address, by hash. Unlogged: a crash resets the counts';

create table oauth_clients (
    id            text primary key,
    name          text not null, -- as registered by the client, not verified
    redirect_uris text[] not null,
    created_at    timestamptz not null default now(),
    used_at       timestamptz    -- last grant, to the day; null if never
);
create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;
create index oauth_clients_used on oauth_clients (used_at) where used_at is not null;
comment on table oauth_clients is 'Self-registered OAuth 2.1 clients. A client belongs to no tenant: its users may be of several';

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
comment on table idempotency_keys is 'Responses for retried requests, written in the transaction of the request. They contain ids, numbers and hashes, never text';

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
    tenant_id  uuid not null,
    user_id    bigint not null,
    id         uuid not null,
    seq        bigint not null, -- users.memory_seq of the writing transaction
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
comment on table memories is 'The current version of each memory';

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
comment on table memory_versions is 'Every version of each memory, including the current one';

----------------------------------------------------------------------------
-- Conversations and imports
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
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index imports_files on imports (tenant_id, user_id, id) where kind = 'file';
create index imports_unstored on imports (tenant_id) where not stored;
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
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create unique index conversations_external on conversations (tenant_id, user_id, platform, external_id);
create index conversations_created on conversations (tenant_id, user_id, created_at desc);
create index conversations_import on conversations (tenant_id, user_id, import_id);
-- Rebalancing compares conversations of all users of a tenant.
create index conversations_balance on conversations (tenant_id, status, updated_at);
comment on table conversations is 'Imported conversations. Only active ones are searchable and count against the quota';

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
create index messages_time on messages (tenant_id, user_id, created_at);
comment on table messages is 'Messages of conversations';

----------------------------------------------------------------------------
-- Units: the pieces of text that search returns
----------------------------------------------------------------------------

create sequence unit_ids as bigint;

create table units (
    tenant_id       uuid not null,
    user_id         bigint not null,
    id              bigint not null default nextval('unit_ids'),
    kind            smallint not null check (kind in (1, 2)), -- 1 memory, 2 chat
    group_id        bigint not null,  -- the bucket of a memory, a hash of a chat's platform
    memory_id       uuid,
    conversation_id uuid,
    seq             integer not null default 0, -- of the message
    span_start      integer not null, -- byte offsets into the text
    span_end        integer not null,
    active          boolean not null default true, -- false if the conversation is excluded or blocked
    tsv             tsvector not null,
    embedding       bytea,            -- half precision, little endian; null until embedded
    indexed_at      timestamptz,      -- when the vector store was last seen to contain it
    created_at      timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id, memory_id) references memories on delete cascade,
    foreign key (tenant_id, user_id, conversation_id) references conversations on delete cascade,
    check ((kind = 1) = (memory_id is not null) and (kind = 2) = (conversation_id is not null))
) partition by hash (user_id);
comment on table units is 'Pieces of memories and messages, as indexed. Immutable: an edit creates new units, so the vector store never has a stale entry';

-- The toast target keeps tsv and embedding in the row, uncompressed, up to a
-- page: ranking reads tsv of thousands of units several times.
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
create index units_chat_words on units using gin (user_id, tsv) with (gin_pending_list_limit = 128) where kind = 2 and active;
create index units_kind on units (tenant_id, user_id, kind, id) where active;
create index units_memory on units (tenant_id, user_id, memory_id) where memory_id is not null;
create index units_conversation on units (tenant_id, user_id, conversation_id, seq) where conversation_id is not null;
create index units_unindexed on units (tenant_id, user_id, kind, id) where active and indexed_at is null;
create index units_just_indexed on units (tenant_id, user_id, kind, indexed_at) where active and indexed_at is not null;
-- Jobs select units by tenant and id, regardless of the user.
create index units_id on units (tenant_id, id);

----------------------------------------------------------------------------
-- Lexical search
--
-- @@ is not leakproof, so under row-level security PostgreSQL evaluates it after
-- the policy and uses an index on (user_id, tsv) for the user only. Hence
-- lexical_search runs as the owner, who is not subject to the policies. It
-- returns ids and scores only, and nothing unless its scope is the transaction's.
----------------------------------------------------------------------------

-- lexical_need returns the query for units with terms whose idf sums up to at
-- least need; null if the sum of all is less. Terms must be ordered rarest first.
-- +goose StatementBegin
create function lexical_need(terms tsquery[], idf float8[], need float8) returns tsquery
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    n       int := cardinality(terms);
    rest    float8 := 0;
    q       tsquery; -- the branch that includes the first term
    without tsquery;
begin
    for i in 1..n loop
        rest := rest + idf[i];
    end loop;
    if n = 0 or need > rest + 1e-9 then
        return null;
    end if;
    if need <= idf[1] then
        q := terms[1];
    else
        q := terms[1] && public.lexical_need(terms[2:], idf[2:], need - idf[1]);
    end if;
    if need > rest - idf[1] + 1e-9 then
        return q;
    end if;
    without := public.lexical_need(terms[2:], idf[2:], need);
    return coalesce(q || without, without);
end $$;
-- +goose StatementEnd
revoke all on function lexical_need(tsquery[], float8[], float8) from public;

-- lexical_terms estimates the rarity of each word of the query from the user's
-- latest units and returns at most six words, rarest first. It omits words that
-- occur in nearly every unit, unless there are few units or no other words. It
-- runs with the privileges of its caller: lexical_search.
-- +goose StatementBegin
create function lexical_terms(p_tenant uuid, p_user bigint, p_kind smallint, p_query text,
    out terms tsquery[], out idf float8[], out telling boolean)
language plpgsql stable
set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan set jit = off as $$
begin
    with words as materialized (
        -- tsquery expects lexemes in single quotes.
        select ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery as term
        from unnest(to_tsvector('english', p_query))
        order by positions[1] limit 64
    ), sample as materialized (
        select u.tsv from units u
        where u.tenant_id = p_tenant and u.user_id = p_user and u.kind = p_kind and u.active
        order by u.id desc limit 300
    ), size as (
        select count(*)::float8 as n from sample
    ), counted as (
        select w.term, count(s.tsv) filter (where s.tsv @@ w.term) as df
        from words w left join sample s on true group by w.term
    ), weighed as (
        select term, ln(1 + (n - df + 0.5) / (df + 0.5)) as idf, n
        from counted, size
        -- If the sample is all units, a word without a match is nowhere.
        where df > 0 or n = 300
    ), kept as (
        select term, w.idf, w.idf > 0.5 as rare from weighed w
        where w.idf > 0.5 or n < 50 or not exists (select from weighed o where o.idf > 0.5)
        order by w.idf desc, term limit 6
    )
    select array_agg(k.term order by k.idf desc, k.term), array_agg(k.idf order by k.idf desc, k.term), bool_or(k.rare)
    into terms, idf, telling from kept k;
end $$;
-- +goose StatementEnd
revoke all on function lexical_terms(uuid, bigint, smallint, text) from public;

-- lexical_search returns the user's best units for a query, best first. Up to
-- 5,000 units it ranks all that contain any selected word. Beyond, an OR would
-- rank nearly everything, so a unit needs words worth half of the total weight:
-- more if too many units qualify, less if too few do.
-- p_from and p_to filter by the creation of the memory or conversation, p_after
-- and p_before by the time of the message.
-- +goose StatementBegin
create function lexical_search(p_tenant uuid, p_user bigint, p_kind smallint, p_group bigint,
    p_from timestamptz, p_to timestamptz, p_after timestamptz, p_before timestamptz, p_query text, p_limit int)
returns table (unit_id bigint, score float8)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp set plan_cache_mode = force_custom_plan set jit = off as $$
declare
    terms   tsquery[];
    idf     float8[];
    telling boolean;
    total   float8 := 0;
    large   boolean;
    wanted  tsquery;
    better  tsquery;
    hits    int;
    since   bigint := 0;
    source  text;
    ranking text := '0';
begin
    if p_tenant::text is distinct from current_setting('mnemo.tenant', true)
        or p_user::text is distinct from current_setting('mnemo.user', true) or p_kind not in (1, 2) then
        return;
    end if;
    select t.terms, t.idf, t.telling into terms, idf, telling from lexical_terms(p_tenant, p_user, p_kind, p_query) t;
    if terms is null then
        return;
    end if;
    -- The indexes are partial, so the kind must be a constant in the plan.
    source := format(' from units u where u.tenant_id = $1 and u.user_id = $2 and u.kind = %s and u.active', p_kind);
    execute 'select count(*) > 5000 from (select' || source || ' limit 5001) s' using p_tenant, p_user into large;
    if large and not telling then
        -- Only common words: rank the latest units.
        execute 'select min(id) from (select u.id' || source || ' order by u.id desc limit 5000) s'
            using p_tenant, p_user into since;
        source := source || ' and u.id >= ' || since;
    end if;
    if p_group <> 0 then
        source := source || ' and u.group_id = $4';
    end if;
    if p_from is not null or p_to is not null then
        source := source || format(' and exists (select from %I o where o.tenant_id = u.tenant_id
            and o.user_id = u.user_id and o.id = u.%I and o.created_at >= coalesce($5, ''-infinity'')
            and o.created_at < coalesce($6, ''infinity''))',
            (array['memories', 'conversations'])[p_kind], (array['memory_id', 'conversation_id'])[p_kind]);
    end if;
    if p_kind = 2 and (p_after is not null or p_before is not null) then
        source := source || ' and exists (select from messages g where g.tenant_id = u.tenant_id
            and g.user_id = u.user_id and g.conversation_id = u.conversation_id and g.seq = u.seq
            and g.created_at >= coalesce($7, ''-infinity'') and g.created_at < coalesce($8, ''infinity''))';
    end if;
    source := source || ' and u.tsv @@ $3';
    for i in 1..cardinality(terms) loop
        wanted := coalesce(wanted || terms[i], terms[i]);
        total := total + idf[i];
        ranking := ranking || format(' + $10[%s] * ts_rank(u.tsv, $9[%s])', i, i);
    end loop;
    if large and telling then
        wanted := lexical_need(terms, idf, 0.5 * total);
        execute 'select count(*) from (select' || source || ' limit 3000) s'
            using p_tenant, p_user, wanted, p_group, p_from, p_to, p_after, p_before into hits;
        if hits >= 3000 then
            foreach total in array array[0.7 * total, 0.9 * total] loop
                better := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 3000) s'
                    using p_tenant, p_user, better, p_group, p_from, p_to, p_after, p_before into hits;
                exit when hits < 100;
                wanted := better;
                exit when hits < 3000;
            end loop;
        elsif hits < 100 then
            foreach total in array array[0.35 * total, 0.2 * total] loop
                wanted := lexical_need(terms, idf, total);
                execute 'select count(*) from (select' || source || ' limit 100) s'
                    using p_tenant, p_user, wanted, p_group, p_from, p_to, p_after, p_before into hits;
                exit when hits >= 100;
            end loop;
        end if;
    end if;
    return query execute 'select u.id, (' || ranking || ') / (1 + ln(length(u.tsv))) as score' || source
        || ' order by score desc, u.id desc limit ' || p_limit
        using p_tenant, p_user, wanted, p_group, p_from, p_to, p_after, p_before, terms, idf;
end $$;
-- +goose StatementEnd
revoke all on function lexical_search(uuid, bigint, smallint, bigint, timestamptz, timestamptz, timestamptz, timestamptz, text, int) from public;

----------------------------------------------------------------------------
-- OAuth lookup
----------------------------------------------------------------------------

-- oauth_holder returns the user that a secret belongs to. The scope of a request
-- is derived from it, so it runs as the owner. It returns nothing for an unknown
-- secret, for an inactive user, or if the password has changed since the grant.
-- +goose StatementBegin
create function oauth_holder(p_hash bytea, p_kind text)
returns table (tenant_id uuid, user_id bigint, expires_in float8)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select s.tenant_id, s.user_id, extract(epoch from s.expires_at - now())::float8
    from oauth_secrets s
    join oauth_grants g on g.tenant_id = s.tenant_id and g.user_id = s.user_id and g.id = s.grant_id
    join users u on u.tenant_id = s.tenant_id and u.id = s.user_id and u.active
        and u.password_hash is not distinct from g.password_hash
    where s.hash = p_hash and s.kind = p_kind
$$;
-- +goose StatementEnd
revoke all on function oauth_holder(bytea, text) from public;

----------------------------------------------------------------------------
-- Row-level security
--
-- A transaction sees the rows of its scope. postgres.DB sets mnemo.tenant and
-- mnemo.user with SET LOCAL. Both are '' on a pooled connection after commit,
-- hence nullif. The user '*' is all users of the tenant, for jobs and the
-- operator. Without a scope no row is visible.
--
-- The policies of a partitioned table do not apply to statements that name a
-- partition, so each partition has its own, and Migrate grants no access to
-- partitions. The owner is exempt (no force): lexical_search depends on it.
----------------------------------------------------------------------------

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['oauth_grants', 'oauth_secrets', 'idempotency_keys', 'buckets', 'memories', 'memory_versions',
        'imports', 'import_chunks', 'import_ledger', 'conversations', 'messages', 'units',
        'units_0', 'units_1', 'units_2', 'units_3', 'units_4', 'units_5', 'units_6', 'units_7'] loop
        execute format('alter table %I enable row level security', t);
        execute format($p$
            create policy scope on %I using (
                tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
                and (current_setting('mnemo.user', true) = '*'
                     or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint))
        $p$, t);
    end loop;
end $$;
-- +goose StatementEnd
