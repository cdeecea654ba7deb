-- Who is signed in to the dashboard, and who tried.

-- +goose Up

-- A session is known by the hash of what its cookie holds. It lasts while its
-- user keeps the password it began with.
create table sessions (
    hash          bytea primary key,
    tenant_id     uuid not null,
    user_id       bigint not null,
    password_hash bytea, -- null when it began without one
    created_at    timestamptz not null default now(),
    expires_at    timestamptz not null,
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index sessions_user on sessions (tenant_id, user_id);
create index sessions_expiry on sessions (expires_at);

-- Failed sign-ins of an account or from an address, known by a hash, in a span
-- of time that begins with the first. Unlogged: a crash forgives them.
create unlogged table sign_in_attempts (
    key      bytea primary key,
    began_at timestamptz not null,
    attempts bigint not null
) with (fillfactor = 50);
create index sign_in_attempts_age on sign_in_attempts (began_at);

-- Whom a sign-in name may mean; the index of names begins with the cluster.
create index tenants_sign_in on tenants (namespace, name);

-- +goose Down
drop index tenants_sign_in;
drop table sign_in_attempts, sessions;
