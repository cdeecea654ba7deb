-- Lookups before there is a scope: the scope of a request is derived from them, so they run as the owner.

-- oauth_holder returns the user that a secret belongs to. It returns nothing for an unknown secret, for an inactive
-- user, or if the password has changed since the grant.
create or replace function oauth_holder(p_hash bytea, p_kind text)
returns table (tenant_id uuid, user_id bigint, expires_in float8)
language sql stable security definer rows 1 set search_path = pg_catalog, public, pg_temp as $$
    select s.tenant_id, s.user_id, extract(epoch from s.expires_at - now())::float8
    from oauth_secrets s
    join oauth_grants g on g.tenant_id = s.tenant_id and g.user_id = s.user_id and g.id = s.grant_id
    join users u on u.tenant_id = s.tenant_id and u.id = s.user_id and u.active
        and u.password_hash is not distinct from g.password_hash
    where s.hash = p_hash and s.kind = p_kind
$$;
revoke all on function oauth_holder from public;

-- oauth_app returns the client id of the app that holds a secret; see oauth_holder.
create or replace function oauth_app(p_hash bytea) returns text
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
    select g.client_id from oauth_secrets s
    join oauth_grants g on g.tenant_id = s.tenant_id and g.user_id = s.user_id and g.id = s.grant_id
    where s.hash = p_hash
$$;
revoke all on function oauth_app from public;

-- user_token_holder returns the user and the scopes of a valid token.
create or replace function user_token_holder(p_hash bytea)
returns table (tenant_id uuid, user_id bigint, hash bytea, id uuid, scopes text[], expires_at timestamptz, last_used_at timestamptz)
language sql stable security definer rows 1 set search_path = pg_catalog, public, pg_temp as $$
    select t.tenant_id, t.user_id, t.hash, t.id, t.scopes, t.expires_at, t.last_used_at
    from user_tokens t
    join users u on u.tenant_id = t.tenant_id and u.id = t.user_id and u.active
        and u.password_hash is not distinct from t.password_hash
    where t.hash = p_hash and (t.expires_at is null or t.expires_at > now())
$$;
revoke all on function user_token_holder from public;
