-- name: InsertWebhook :execrows
insert into webhooks (tenant_id, name, url, events, secret, declared, message, position)
select t.id, @name, @url, @events::text[], @secret, @declared, @message, coalesce((select c.seq from audit_chains c where c.tenant_id = t.id), 0)
from tenants t where t.id = @tenant_id and t.state = 'active'
on conflict do nothing;

-- name: ListWebhooks :many
select w.*, coalesce(c.seq, 0)::bigint as head from webhooks w left join audit_chains c on c.tenant_id = w.tenant_id
where w.tenant_id = @tenant_id order by w.name;

-- name: DeclareWebhook :execrows
-- Delivery is retried at once, and continues if it was disabled. Nothing if nothing changes.
update webhooks set url = @url, events = @events::text[], secret = @secret, declared = true,
    previous_secret = case when secret = @secret then previous_secret else secret end,
    previous_until = case when secret = @secret then previous_until else now() + @overlap::interval end,
    attempts = 0, due_at = now(), failing_since = null, disabled = false, message = @message
where tenant_id = @tenant_id and name = @name and (url <> @url or events <> @events::text[] or secret <> @secret or not declared);

-- name: GetWebhook :one
select * from webhooks where tenant_id = @tenant_id and name = @name;

-- name: RotateWebhook :execrows
update webhooks set previous_secret = secret, previous_until = now() + @overlap::interval, secret = @secret
where tenant_id = @tenant_id and name = @name and not declared;

-- name: MoveWebhook :execrows
-- Without a time, delivery continues where it stopped.
update webhooks w set attempts = 0, due_at = now(), failing_since = null, disabled = false, message = @message,
    position = case when sqlc.narg('since')::timestamptz is null then w.position
        else coalesce((select min(r.seq) - 1 from audit_records r where r.tenant_id = w.tenant_id and r.at >= sqlc.narg('since')), w.position) end
where w.tenant_id = @tenant_id and w.name = @name;

-- name: DeleteWebhook :execrows
delete from webhooks where tenant_id = @tenant_id and name = @name and declared = @declared;

-- name: DeleteDeclaredWebhooks :many
delete from webhooks where tenant_id = @tenant_id and declared returning name;

-- name: ClaimWebhooks :many
-- due_at is the end of the claim, as webhooks_claim stores it: now() is the same in the whole transaction.
select tenant_id::text as tenant_id, name::text as name, (now() + @lease::interval)::timestamptz as due_at
from webhooks_claim(@most::int, @lease::interval);

-- name: ExtendWebhookClaim :one
-- Nothing if the claim has ended. A job of an earlier version does not know its claim. It may work unless the webhook waits
-- longer than a claim lasts.
update webhooks set due_at = now() + @lease::interval
where tenant_id = @tenant_id and name = @name
    and (due_at = sqlc.narg('due')::timestamptz or sqlc.narg('due') is null and due_at <= now() + @lease::interval)
returning *;

-- name: ReleaseWebhook :exec
-- Not while it waits for the next attempt.
update webhooks set due_at = now() where tenant_id = @tenant_id and name = @name and due_at = @due and attempts = 0;

-- name: PauseWebhooks :exec
-- Also ends the claims of running jobs.
update webhooks set due_at = @until, attempts = 0, failing_since = null where tenant_id = @tenant_id and not disabled;

-- name: ResumeWebhooks :exec
update webhooks set due_at = now() where tenant_id = @tenant_id and due_at = @until;

-- name: FailingWebhooks :one
select w.failing::bigint as failing, w.disabled::bigint as disabled, t.failing::bigint as failing_tenants, t.delivering::bigint as delivering_tenants
from webhooks_failing() w, webhook_tenants() t;

-- name: NextWebhookRecords :many
-- The name of the user, as the administrator and the applications know it, while the user exists. Each user is looked up alone, as in MemoryOwners.
select r.seq, r.hash, coalesce(r.subject::text, '')::text as subject, coalesce(u.name, '')::text as user_name, coalesce(u.kind, '')::text as user_kind,
    r.at, r.actor, r.via, r.app, r.verb, r.objects
from audit_records r
left join lateral (select x.name, x.kind from users x where x.tenant_id = @tenant_id and x.audit_id = r.subject limit 1) u on true
where r.tenant_id = @tenant_id and r.seq > @after order by r.seq limit @page;

-- name: SaveWebhookProgress :many
-- Nothing if a replay changed the position meanwhile, or the claim has ended. changed
-- means that the state in the status of the Tenant is another one.
with before as (
    select x.attempts, starts_with(x.message, @not_connected) as unconnected from webhooks x where x.tenant_id = @tenant_id and x.name = @name and x.due_at = @due and x.position = @from_position
        and not x.disabled for update
)
update webhooks w set position = @to_position, attempts = @attempts, due_at = now() + @wait::interval, disabled = @disabled,
    failing_since = case when @attempts::int = 0 then null else coalesce(w.failing_since, now()) end,
    skipped = w.skipped + @skipped, message = @message
from before b where w.tenant_id = @tenant_id and w.name = @name
returning (w.declared and (w.disabled or (b.attempts >= @failing::int) <> (w.attempts >= @failing::int)
    or b.unconnected and not starts_with(w.message, @not_connected)))::boolean as changed, w.due_at;
