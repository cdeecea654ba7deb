-- Tokens that users create, in addition to the one in tokens (docs/tokens.md).
--
-- The server of the previous release does not find them, so during an upgrade it rejects a
-- token with few scopes instead of ignoring the scopes.

-- +goose Up
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
alter table user_tokens enable row level security;
create policy scope on user_tokens using (
    tenant_id = nullif(current_setting('mnemo.tenant', true), '')::uuid
    and (current_setting('mnemo.user', true) = '*'
         or user_id = nullif(nullif(current_setting('mnemo.user', true), ''), '*')::bigint));

create trigger record_revocation after update on user_tokens for each row
    when (new.expires_at is not null and new.expires_at is distinct from old.expires_at)
    execute function record_token_revocation();

-- user_token_holder returns the user and the scopes of a valid token. The scope of a request is
-- derived from it, so it runs as the owner.
-- +goose StatementBegin
create function user_token_holder(p_hash bytea)
returns table (tenant_id uuid, user_id bigint, hash bytea, id uuid, scopes text[], expires_at timestamptz, last_used_at timestamptz)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select t.tenant_id, t.user_id, t.hash, t.id, t.scopes, t.expires_at, t.last_used_at
    from user_tokens t
    join users u on u.tenant_id = t.tenant_id and u.id = t.user_id and u.active
        and u.password_hash is not distinct from t.password_hash
    where t.hash = p_hash and (t.expires_at is null or t.expires_at > now())
$$;
-- +goose StatementEnd
revoke all on function user_token_holder(bytea) from public;
