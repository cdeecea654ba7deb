-- name: BeginRequest :execrows
-- Records a request unless it was recorded within 24 hours. Waits for a concurrent
-- transaction with the same key.
insert into idempotency_keys (tenant_id, user_id, route, key, body)
values (@tenant_id, @user_id, @route, @key, @body)
on conflict (tenant_id, user_id, route, key) do update set body = excluded.body, answer = null, created_at = excluded.created_at
where idempotency_keys.created_at <= now() - interval '24 hours';

-- name: RequestAnswer :one
select body, answer from idempotency_keys where tenant_id = @tenant_id and user_id = @user_id and route = @route and key = @key;

-- name: FinishRequest :exec
update idempotency_keys set answer = @answer where tenant_id = @tenant_id and user_id = @user_id and route = @route and key = @key;

-- name: ExpireRequests :exec
-- Deletes some of the user's expired keys, skipping those locked by others.
delete from idempotency_keys k using (
    select o.route, o.key from idempotency_keys o
    where o.tenant_id = @tenant_id and o.user_id = @user_id and o.created_at <= now() - interval '24 hours'
    limit 100 for update skip locked
) old
where k.tenant_id = @tenant_id and k.user_id = @user_id and k.route = old.route and k.key = old.key;
