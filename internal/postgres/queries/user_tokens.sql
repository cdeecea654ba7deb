-- name: ListUserTokens :many
-- Valid tokens, newest first.
select t.id::text as id, t.hash, t.name, t.scopes, t.created_at, t.expires_at, t.last_used_at
from user_tokens t
join users u on u.tenant_id = t.tenant_id and u.id = t.user_id and u.password_hash is not distinct from t.password_hash
where t.tenant_id = @tenant_id and t.user_id = @user_id and (t.expires_at is null or t.expires_at > now())
order by t.created_at desc, t.id;

-- name: UserTokenNames :many
-- Also of tokens that have ended.
select t.hash, t.name from user_tokens t where t.tenant_id = @tenant_id and t.user_id = @user_id;

-- name: InsertUserToken :one
-- No rows if the token or session that creates it has ended. A token expires no later than the
-- one that creates it. One of a user of an identity provider ends after a time, because the
-- provider does not tell when it removes the user.
insert into user_tokens (tenant_id, user_id, hash, name, scopes, password_hash, expires_at)
select u.tenant_id, u.id, @hash, @name, @scopes::text[], u.password_hash,
    least(sqlc.narg('expires_at')::timestamptz, c.token_expiry, case when u.issuer is not null then now() + @external_life::interval end)
from users u
join (
    select t.hash, t.expires_at, t.expires_at as token_expiry from tokens t where t.tenant_id = @tenant_id and t.user_id = @user_id
    union all
    select t.hash, t.expires_at, t.expires_at from user_tokens t
    join users o on o.tenant_id = t.tenant_id and o.id = t.user_id and o.password_hash is not distinct from t.password_hash
    where t.tenant_id = @tenant_id and t.user_id = @user_id
    union all
    select s.hash, s.expires_at, null from sessions s
    join users o on o.tenant_id = s.tenant_id and o.id = s.user_id and o.password_hash is not distinct from s.password_hash
    where s.tenant_id = @tenant_id and s.user_id = @user_id and not s.one_time
) c on left(encode(c.hash, 'hex'), 12) = @creator::text and (c.expires_at is null or c.expires_at > now())
where u.tenant_id = @tenant_id and u.id = @user_id
limit 1
returning id::text as id, created_at, expires_at;

-- name: RevokeUserToken :many
-- A day ago, as in all revocations: the token stays revoked if the clock of the database is set back.
update user_tokens t set expires_at = now() - interval '1 day'
where t.tenant_id = @tenant_id and t.user_id = @user_id and t.id = @id and (t.expires_at is null or t.expires_at > now())
returning t.hash;

-- name: EndUserTokens :exec
-- For one user, or for all users of the tenant (0).
update user_tokens t set expires_at = now() - interval '1 day'
where t.tenant_id = @tenant_id and (t.user_id = @user_id or @user_id = 0) and (t.expires_at is null or t.expires_at > now());

-- name: DeleteUserTokens :exec
delete from user_tokens where tenant_id = @tenant_id and user_id = @user_id;

-- name: TouchUserToken :exec
-- Of several concurrent replicas, only one writes.
update user_tokens set last_used_at = now() where tenant_id = @tenant_id and user_id = @user_id and id = @id
    and (last_used_at is null or last_used_at < now() - interval '1 minute');

-- name: ExpireUserTokens :execrows
-- Deletes some tokens that expired or were revoked a time ago, or that a new password ended.
delete from user_tokens t using (
    select o.user_id, o.id from user_tokens o join users u on u.tenant_id = o.tenant_id and u.id = o.user_id
    where o.tenant_id = @tenant_id
        and (o.expires_at < now() - @age::interval or u.password_hash is distinct from o.password_hash)
    limit @batch::bigint for update of o skip locked
) old
where t.tenant_id = @tenant_id and t.user_id = old.user_id and t.id = old.id;

-- name: RepeatUserTokenRevocation :exec
update user_tokens set expires_at = @until where tenant_id = @tenant_id and hash = any(@hashes::bytea[])
    and (expires_at is null or expires_at > @until);
