-- name: InsertPlatformSession :exec
insert into platform_sessions (hash, issuer, subject, email, expires_at)
values (@hash, @issuer, @subject, @email, now() + @lifetime::interval);

-- name: GetPlatformSession :one
select hash, issuer, subject, email from platform_sessions where hash = @hash and expires_at > now();

-- name: DeletePlatformSession :many
delete from platform_sessions where hash = @hash returning issuer, subject;

-- name: ExpirePlatformSessions :exec
delete from platform_sessions where expires_at <= now();

-- name: DeletePlatformSessions :exec
delete from platform_sessions;
