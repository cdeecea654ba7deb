package postgres

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// SignInPlatform begins a session of a platform administrator and resets the failed attempts
// of the address.
func (d *DB) SignInPlatform(ctx context.Context, s tenant.PlatformSignIn) error {
	ctx = withPlatformActor(ctx, tenant.ViaProvider, s.Session)
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := q.ExpirePlatformSessions(ctx); err != nil {
			return err
		}
		err := q.InsertPlatformSession(ctx, db.InsertPlatformSessionParams{
			Hash: s.Session[:], Issuer: s.Issuer, Subject: s.Subject, Email: s.Email, Lifetime: interval(s.Lifetime),
		})
		if err != nil {
			return err
		}
		auditPlatform(ctx, q, audit.SessionCreate, s.Session, s.Issuer, s.Subject)
		return nil
	})
	if err != nil {
		return fmt.Errorf("sign in to the platform overview: %w", err)
	}
	d.forgive(ctx, attemptKey("address", s.Address), nil)
	return nil
}

// PlatformSession returns the administrator of a session; Unauthorized if there is none.
func (d *DB) PlatformSession(ctx context.Context, h tenant.Hash) (tenant.PlatformAdministrator, error) {
	row, err := db.New(d.pool).GetPlatformSession(ctx, h[:])
	if errors.Is(err, pgx.ErrNoRows) || err == nil && subtle.ConstantTimeCompare(row.Hash, h[:]) != 1 {
		return tenant.PlatformAdministrator{}, tenant.ErrSessionEnded
	}
	if err != nil {
		return tenant.PlatformAdministrator{}, fmt.Errorf("read session: %w", mapError(err))
	}
	return tenant.PlatformAdministrator{Issuer: row.Issuer, Subject: row.Subject, Email: row.Email}, nil
}

// EndPlatformSession ends a session. It does nothing if there is none.
func (d *DB) EndPlatformSession(ctx context.Context, h tenant.Hash) error {
	ctx = withPlatformActor(ctx, tenant.ViaSession, h)
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		ended, err := q.DeletePlatformSession(ctx, h[:])
		if err != nil {
			return err
		}
		for _, s := range ended {
			auditPlatform(ctx, q, audit.SessionDelete, h, s.Issuer, s.Subject)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// withPlatformActor returns a context whose changes are those of a platform administrator.
func withPlatformActor(ctx context.Context, via string, h tenant.Hash) context.Context {
	return tenant.WithActor(ctx, tenant.Actor{Kind: tenant.ActorAdministrator, Via: via, Fingerprint: h.Fingerprint()})
}

// auditPlatform writes the audit record of a session, which belongs to no tenant.
func auditPlatform(ctx context.Context, q *db.Queries, verb audit.Verb, h tenant.Hash, issuer, subject string) {
	auditUser(ctx, q, string(audit.Installation), 0, verb, h.Fingerprint(), issuer, subject)
}

const (
	// nearQuota is the share of a quota above which a tenant is near it.
	nearQuota = 0.8
	// maxIndexLag and maxDriftedSweeps are the thresholds of the alerts MnemoIndexLag and
	// MnemoIndexDriftNotConverging.
	maxIndexLag      = 5 * time.Minute
	maxDriftedSweeps = 3
)

// overview reads every tenant that is not being deleted. The jobs are those that write to the
// index ($1); the other parameters are the thresholds.
const overview = `with waiting as (
	select args ->> 'tenant' as tenant, count(*) as changes, extract(epoch from now() - min(created_at))::float8 as lag
	from river_job where state in ('available', 'pending', 'retryable', 'running', 'scheduled') and kind = $1 group by 1
), people as (
	select tenant_id, count(*) as users from users where active and kind = 'user' group by tenant_id
), counted as (
	select t.id, t.namespace, t.name, t.display_name, t.suspended, t.state = 'retained' as retained,
		coalesce(u.memories, 0) as memories, coalesce(u.conversations, 0) as conversations, coalesce(u.blocked, 0) as blocked,
		coalesce(u.storage, 0) as storage, coalesce(n.users, 0) + coalesce(u.application_users, 0) as users,
		coalesce(q.memories, 0) as memories_hard, coalesce(q.conversations, 0) as conversations_hard,
		coalesce(q.storage, 0) as storage_hard, coalesce(q.users, 0) as users_hard,
		coalesce(w.changes, 0) as changes, greatest(coalesce(w.lag, 0), 0) as lag,
		p.tenant_id is null and t.state = 'active' and t.created_at < now() - make_interval(secs => $2) as unplaced,
		case when s.drifted_sweeps >= $3 then s.drifted_sweeps else 0 end as drifted, coalesce(f.webhooks, 0) as webhooks
	from tenants t
	left join usage u on u.tenant_id = t.id left join quotas q on q.tenant_id = t.id left join people n on n.tenant_id = t.id
	left join placements p on p.tenant_id = t.id left join index_sweeps s on s.tenant_id = t.id
	left join waiting w on w.tenant = t.id::text left join tenants_failing_webhooks() f on f.tenant_id = t.id
	where t.state <> 'purging'
), measured as (
	select *, greatest(memories / greatest(memories_hard, 1)::float8, conversations / greatest(conversations_hard, 1)::float8,
		storage / greatest(storage_hard, 1)::float8, users / greatest(users_hard, 1)::float8) as share, lag > $2 as lagging
	from counted
), judged as (
	select *, not retained and (share >= $4 or blocked > 0) as near_quota,
		not retained and (lagging or unplaced or drifted > 0 or webhooks > 0) as unhealthy
	from measured
)
`

// usageColumns are the columns of countedFields.
const usageColumns = `memories, conversations, blocked, storage, users::bigint, memories_hard, conversations_hard, storage_hard, users_hard`

func countedFields(used *tenant.Usage, hard *tenant.Quota) []any {
	return []any{
		&used.Memories, &used.Conversations, &used.Blocked, &used.Storage, &used.Users,
		&hard.Memories, &hard.Conversations, &hard.Storage, &hard.Users,
	}
}

// overviewUsage reads the tenants with the highest relative usage, highest first.
const overviewUsage = overview + `select id::text, namespace, name, ` + usageColumns + ` from measured where not retained
order by share desc, namespace, name limit $5`

// thresholds are the parameters of overview.
func thresholds() []any {
	return []any{(indexing.SyncArgs{}).Kind(), maxIndexLag.Seconds(), maxDriftedSweeps, nearQuota}
}

const overviewTotals = overview + `select count(*), count(*) filter (where near_quota), count(*) filter (where unhealthy),
	count(*) filter (where retained), coalesce(sum(changes), 0)::bigint, coalesce(max(lag), 0)::float8 from judged`

const overviewPage = overview + `select id::text, namespace, name, display_name, suspended, retained, near_quota, unhealthy,
	` + usageColumns + `,
	changes::bigint, lag, lagging, unplaced, drifted, webhooks::bigint
from judged
where case $5 when 'near-quota' then near_quota when 'unhealthy' then unhealthy when 'retained' then retained else true end
	and position(lower($6) in lower(namespace || '/' || name || ' ' || display_name)) > 0
order by case $7 when 'storage' then storage when 'index-lag' then lag when 'name' then 0 else share end desc, namespace, name
limit $8 offset $9`

// Overview returns the state of all tenants and a page of them. It reads no user
// data.
func (d *DB) Overview(ctx context.Context, f tenant.OverviewFilter) (tenant.Overview, error) {
	var o tenant.Overview
	err := d.inTx(ctx, func(tx pgx.Tx, _ *db.Queries) error {
		o = tenant.Overview{}
		var lag float64
		err := tx.QueryRow(ctx, overviewTotals, thresholds()...).Scan(&o.All, &o.NearQuota, &o.Unhealthy, &o.Retained, &o.Changes, &lag)
		if err != nil {
			return err
		}
		o.IndexLag = time.Duration(lag * float64(time.Second))
		rows, err := tx.Query(ctx, overviewPage, append(thresholds(), string(f.Group), f.Name, string(f.Order), f.Limit+1, f.Offset)...)
		if err != nil {
			return err
		}
		o.Tenants, err = pgx.CollectRows(rows, scanOverviewTenant)
		return err
	})
	if err != nil {
		return tenant.Overview{}, fmt.Errorf("read platform overview: %w", err)
	}
	if o.HasMore = len(o.Tenants) > f.Limit; o.HasMore {
		o.Tenants = o.Tenants[:f.Limit]
	}
	return o, nil
}

func scanOverviewTenant(row pgx.CollectableRow) (t tenant.OverviewTenant, err error) {
	var lag float64
	err = row.Scan(slices.Concat(
		[]any{&t.ID, &t.Namespace, &t.Name, &t.DisplayName, &t.Suspended, &t.Retained, &t.NearQuota, &t.Unhealthy},
		countedFields(&t.Usage, &t.Hard),
		[]any{&t.Changes, &lag, &t.Lagging, &t.Unplaced, &t.DriftedSweeps, &t.FailingWebhooks},
	)...)
	t.IndexLag = time.Duration(lag * float64(time.Second))
	return t, err
}
