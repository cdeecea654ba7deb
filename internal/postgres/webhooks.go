package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

var (
	_ webhook.Store         = (*DB)(nil)
	_ webhook.DeclaredStore = (*DB)(nil)
)

// dueWebhooks is the maximum number of webhooks whose deliveries are queued at a time.
const dueWebhooks = 1000

// CreateWebhook stores a webhook that receives the events from now on; Conflict if the name
// exists.
func (d *DB) CreateWebhook(ctx context.Context, id tenant.ID, s webhook.Spec, secret string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := d.SealRecords(ctx, id, true); err != nil { // earlier changes are not events
		return err
	}
	return d.changeWebhook(ctx, id, audit.WebhookCreate, s.Name, func(q *db.Queries) error {
		n, err := q.InsertWebhook(ctx, db.InsertWebhookParams{
			TenantID: string(id), Name: s.Name, Url: s.URL, Events: s.Events, Secret: secret, Message: webhook.NotConnected,
		})
		if err == nil && n == 0 {
			err = webhook.Exists(s.Name)
		}
		return err
	})
}

// RotateWebhook replaces the secret. The previous one signs as well for the overlap.
func (d *DB) RotateWebhook(ctx context.Context, id tenant.ID, name, secret string, overlap time.Duration) error {
	return d.changeWebhook(ctx, id, audit.WebhookUpdate, name, func(q *db.Queries) error {
		n, err := q.RotateWebhook(ctx, db.RotateWebhookParams{TenantID: string(id), Name: name, Secret: secret, Overlap: interval(overlap)})
		return oneUndeclared(ctx, q, n, err, id, name)
	})
}

// ReplayWebhook delivers the events since a time again. If it is zero, delivery continues where
// it stopped. It also enables a disabled webhook.
func (d *DB) ReplayWebhook(ctx context.Context, id tenant.ID, name string, since time.Time) error {
	return d.changeWebhook(ctx, id, audit.WebhookReplay, name, func(q *db.Queries) error {
		n, err := q.MoveWebhook(ctx, db.MoveWebhookParams{
			TenantID: string(id), Name: name, Since: optionalTime(since), Message: webhook.NotConnected,
		})
		if err := oneWebhook(n, err, name); err != nil {
			return err
		}
		return q.NotifyOperator(ctx, string(id)) // of the new state, if the webhook is declared
	})
}

// DeleteWebhook deletes a webhook that is not declared.
func (d *DB) DeleteWebhook(ctx context.Context, id tenant.ID, name string) error {
	return d.changeWebhook(ctx, id, audit.WebhookDelete, name, func(q *db.Queries) error {
		n, err := q.DeleteWebhook(ctx, db.DeleteWebhookParams{TenantID: string(id), Name: name})
		return oneUndeclared(ctx, q, n, err, id, name)
	})
}

// changeWebhook changes a webhook and writes the audit record.
func (d *DB) changeWebhook(ctx context.Context, id tenant.ID, verb audit.Verb, name string, change func(*db.Queries) error) error {
	err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
		if err := change(q); err != nil {
			return err
		}
		auditUser(ctx, q, string(id), 0, verb, name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("change webhook: %w", err)
	}
	return nil
}

// oneUndeclared returns Conflict if nothing was changed because the Tenant declares the webhook.
func oneUndeclared(ctx context.Context, q *db.Queries, n int64, err error, id tenant.ID, name string) error {
	if err != nil || n > 0 {
		return err
	}
	if w, err := q.GetWebhook(ctx, db.GetWebhookParams{TenantID: string(id), Name: name}); err == nil && w.Declared {
		return webhook.Declared(name)
	}
	return oneWebhook(n, nil, name)
}

func oneWebhook(n int64, err error, name string) error {
	if err == nil && n == 0 {
		return webhook.NotFound(name)
	}
	return err
}

// Webhooks returns the webhooks of a tenant, by name.
func (d *DB) Webhooks(ctx context.Context, id tenant.ID) ([]webhook.Webhook, error) {
	var out []webhook.Webhook
	err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.ListWebhooks(ctx, string(id))
		out = collect(rows, func(r db.ListWebhooksRow) webhook.Webhook {
			w := toWebhook(db.Webhook{TenantID: r.TenantID, Name: r.Name, Url: r.Url, Events: r.Events, Secret: r.Secret,
				Position: r.Position, Attempts: r.Attempts, FailingSince: r.FailingSince, Disabled: r.Disabled, Skipped: r.Skipped, Message: r.Message,
				PreviousSecret: r.PreviousSecret, PreviousUntil: r.PreviousUntil, Declared: r.Declared, DueAt: r.DueAt})
			w.Head = r.Head
			return w
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	return out, nil
}

func toWebhook(r db.Webhook) webhook.Webhook {
	w := webhook.Webhook{
		Spec: webhook.Spec{Name: r.Name, URL: r.Url, Events: r.Events}, Tenant: tenant.ID(r.TenantID), Secrets: []string{r.Secret},
		Position: r.Position, Attempts: int(r.Attempts), Disabled: r.Disabled, Skipped: r.Skipped, Message: r.Message,
		Declared: r.Declared, Due: r.DueAt,
	}
	if r.FailingSince != nil {
		w.FailingSince = *r.FailingSince
	}
	if r.PreviousSecret != "" && r.PreviousUntil.After(time.Now()) {
		w.Secrets = append(w.Secrets, r.PreviousSecret)
	}
	return w
}

// NextRecords implements webhook.Store.
func (d *DB) NextRecords(ctx context.Context, job webhook.Args, lease time.Duration, limit int) (webhook.Webhook, []webhook.Record, error) {
	var (
		w   webhook.Webhook
		out []webhook.Record
	)
	err := d.inTenant(ctx, job.Tenant, func(_ pgx.Tx, q *db.Queries) error {
		row, err := q.ExtendWebhookClaim(ctx, db.ExtendWebhookClaimParams{
			TenantID: string(job.Tenant), Name: job.Webhook, Due: optionalTime(job.Due), Lease: interval(lease),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return webhook.NotFound(job.Webhook)
		}
		if err != nil {
			return err
		}
		w = toWebhook(row)
		rows, err := q.NextWebhookRecords(ctx, db.NextWebhookRecordsParams{TenantID: string(job.Tenant), After: w.Position, Page: integer(limit)})
		out = collect(rows, func(r db.NextWebhookRecordsRow) webhook.Record { return webhookRecord(job.Tenant, r) })
		return err
	})
	if err != nil {
		return webhook.Webhook{}, nil, fmt.Errorf("read events: %w", err)
	}
	return w, out, nil
}

func webhookRecord(id tenant.ID, r db.NextWebhookRecordsRow) webhook.Record {
	name := r.UserName
	switch r.UserKind {
	case "application_user":
		name = tenant.UserOfApplication(name)
	case "application":
		name = "" // app has its name
	}
	return webhook.Record{UserName: name, Record: audit.Record{
		Sequence: r.Seq, At: r.At, Tenant: id, User: r.Subject, Actor: r.Actor, Via: r.Via, App: r.App,
		Verb: audit.Verb(r.Verb), Objects: r.Objects, Hash: hex.EncodeToString(r.Hash),
	}}
}

// SaveProgress implements webhook.Store.
func (d *DB) SaveProgress(ctx context.Context, job webhook.Args, p webhook.Progress) (time.Time, error) {
	var due time.Time
	err := d.inTenant(ctx, job.Tenant, func(_ pgx.Tx, q *db.Queries) error {
		due = time.Time{}
		rows, err := q.SaveWebhookProgress(ctx, db.SaveWebhookProgressParams{
			TenantID: string(job.Tenant), Name: job.Webhook, Due: job.Due, FromPosition: p.From, ToPosition: p.To, Attempts: integer(p.Attempts),
			Wait: interval(p.Wait), Disabled: p.Disabled, Skipped: p.Skipped, Message: p.Message, Failing: webhook.FailingAttempts, NotConnected: webhook.NotConnected,
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		due = rows[0].DueAt
		if rows[0].Changed {
			err = q.NotifyOperator(ctx, string(job.Tenant)) // of the new state
		}
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("save progress of webhook: %w", err)
	}
	return due, nil
}

// ReleaseWebhook implements webhook.Store.
func (d *DB) ReleaseWebhook(ctx context.Context, job webhook.Args) error {
	err := d.inTenant(ctx, job.Tenant, func(_ pgx.Tx, q *db.Queries) error {
		return q.ReleaseWebhook(ctx, db.ReleaseWebhookParams{TenantID: string(job.Tenant), Name: job.Webhook, Due: job.Due})
	})
	if err != nil {
		return fmt.Errorf("release webhook: %w", err)
	}
	return nil
}

// QueueDeliveries implements webhook.Store. Unlike a unique job, a claim ends soon after the
// process that runs the job has died.
func (d *DB) QueueDeliveries(ctx context.Context, lease time.Duration) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		due, err := q.ClaimWebhooks(ctx, db.ClaimWebhooksParams{Most: dueWebhooks, Lease: interval(lease)})
		if err != nil || len(due) == 0 {
			return err
		}
		claims := collect(due, func(r db.ClaimWebhooksRow) webhook.Args {
			return webhook.Args{Tenant: tenant.ID(r.TenantID), Webhook: r.Name, Due: r.DueAt}
		})
		if claims, err = renewQueued(ctx, tx, claims); err != nil || len(claims) == 0 {
			return err
		}
		opts := insertOpts(queue.Webhooks)
		opts.MaxAttempts = 1 // another one is queued
		_, err = d.jobs.InsertManyTx(ctx, tx, collect(claims, func(a webhook.Args) river.InsertManyParams {
			return river.InsertManyParams{Args: a, InsertOpts: opts}
		}))
		return err
	})
	if err != nil {
		return fmt.Errorf("queue deliveries: %w", err)
	}
	return nil
}

// giveClaims gives queued jobs ($1) the new claims of their webhooks, by tenantIndex.
const giveClaims = `update river_job j set args = j.args || jsonb_build_object('due', c.due)
	from unnest($2::text[], $3::text[], $4::timestamptz[]) as c (tenant, webhook, due)
	where j.state = 'available' and j.queue = $1 and j.args ->> 'tenant' = c.tenant and j.args ->> 'webhook' = c.webhook
	returning j.args ->> 'tenant', j.args ->> 'webhook'`

// renewQueued gives the claims to the jobs of these webhooks that are still queued, and returns those without one. A second job
// would wait for its turn as well, and its claim would end the first one's.
func renewQueued(ctx context.Context, tx pgx.Tx, claims []webhook.Args) ([]webhook.Args, error) {
	tenants := collect(claims, func(a webhook.Args) string { return string(a.Tenant) })
	names := collect(claims, func(a webhook.Args) string { return a.Webhook })
	ends := collect(claims, func(a webhook.Args) time.Time { return a.Due })
	rows, err := tx.Query(ctx, giveClaims, queue.Webhooks, tenants, names, ends)
	if err != nil {
		return nil, err
	}
	queued := map[webhook.Args]bool{}
	var of webhook.Args
	if _, err := pgx.ForEachRow(rows, []any{&of.Tenant, &of.Webhook}, func() error { queued[of] = true; return nil }); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(claims, func(a webhook.Args) bool { return queued[webhook.Args{Tenant: a.Tenant, Webhook: a.Webhook}] }), nil
}

// resumeWebhooks ends the pause of RetireCopied. It sets the scope of the transaction meanwhile.
func resumeWebhooks(ctx context.Context, q *db.Queries, id string) error {
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: id, UserID: allUsers}); err != nil {
		return err
	}
	if err := q.ResumeWebhooks(ctx, db.ResumeWebhooksParams{TenantID: id, Until: webhook.PausedUntil}); err != nil {
		return err
	}
	return q.SetScope(ctx, db.SetScopeParams{})
}
