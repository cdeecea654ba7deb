-- Programs that users let in (OAuth 2.1).

-- +goose Up

-- A program that registered itself. It belongs to no tenant: its users may be of several.
create table oauth_clients (
    id            text primary key,
    name          text not null, -- as it calls itself
    redirect_uris text[] not null,
    created_at    timestamptz not null default now(),
    used_at       timestamptz -- when access was last given to it, exact to a day; null: never
);
create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;
create index oauth_clients_used on oauth_clients (used_at) where used_at is not null;

-- The access a user gave to a program. Like a session it lasts while its user
-- keeps the password it began with.
create table oauth_grants (
    tenant_id     uuid not null,
    user_id       bigint not null,
    id            uuid not null default gen_random_uuid(),
    client_id     text not null references oauth_clients on delete cascade,
    password_hash bytea, -- null when its session began without one
    redirect_uri  text not null, -- where the code was sent
    challenge     text not null,
    created_at    timestamptz not null default now(),
    refreshed_at  timestamptz not null default now(),
    primary key (tenant_id, user_id, id),
    foreign key (tenant_id, user_id) references users on delete cascade
);
create index oauth_grants_client on oauth_grants (client_id);

-- What the program holds for it. Used codes and refresh tokens stay a while: who
-- shows one again has a copy.
create table oauth_secrets (
    hash       bytea primary key,
    tenant_id  uuid not null,
    user_id    bigint not null,
    grant_id   uuid not null,
    kind       text not null check (kind in ('code', 'access', 'refresh')),
    used       boolean not null default false,
    expires_at timestamptz not null,
    foreign key (tenant_id, user_id, grant_id) references oauth_grants on delete cascade
);
create index oauth_secrets_grant on oauth_secrets (tenant_id, user_id, grant_id);

-- +goose StatementBegin
do $$
declare
    t text;
begin
    foreach t in array array['oauth_grants', 'oauth_secrets'] loop
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

-- oauth_holder tells whose a secret is, which must be known before there is a
-- scope: hence a function of the owner. It gives nothing for a secret that
-- nobody holds, nor when the user has lost the access that was given on.
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

-- +goose Down
drop function oauth_holder(bytea, text);
drop table oauth_secrets, oauth_grants, oauth_clients;
