package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// DeclaredWebhooks implements webhook.DeclaredStore.
func (d *DB) DeclaredWebhooks(ctx context.Context, id tenant.ID) ([]webhook.Webhook, error) {
	all, err := d.Webhooks(ctx, id)
	return slices.DeleteFunc(all, func(w webhook.Webhook) bool { return !w.Declared }), err
}

// DeclareWebhook implements webhook.DeclaredStore.
func (d *DB) DeclareWebhook(ctx context.Context, id tenant.ID, s webhook.Spec, secret string, overlap time.Duration) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := d.SealRecords(ctx, id, true); err != nil { // earlier changes are not events
		return err
	}
	err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.DeclareWebhook(ctx, db.DeclareWebhookParams{
			TenantID: string(id), Name: s.Name, Url: s.URL, Events: s.Events, Secret: secret, Overlap: interval(overlap), Message: webhook.NotConnected,
		})
		verb := audit.WebhookUpdate
		if err == nil && n == 0 {
			verb = audit.WebhookCreate
			n, err = q.InsertWebhook(ctx, db.InsertWebhookParams{
				TenantID: string(id), Name: s.Name, Url: s.URL, Events: s.Events, Secret: secret, Declared: true, Message: webhook.NotConnected,
			})
		}
		if err != nil || n == 0 { // it is stored like this
			return err
		}
		auditUser(ctx, q, string(id), 0, verb, s.Name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("declare webhook: %w", err)
	}
	return nil
}

// DeleteDeclaredWebhook implements webhook.DeclaredStore.
func (d *DB) DeleteDeclaredWebhook(ctx context.Context, id tenant.ID, name string) error {
	err := d.inTenant(ctx, id, func(_ pgx.Tx, q *db.Queries) error {
		n, err := q.DeleteWebhook(ctx, db.DeleteWebhookParams{TenantID: string(id), Name: name, Declared: true})
		if err != nil || n == 0 {
			return err
		}
		auditUser(ctx, q, string(id), 0, audit.WebhookDelete, name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete declared webhook: %w", err)
	}
	return nil
}

// endDeclaredWebhooks deletes the declared webhooks of a tenant whose Tenant was deleted. It sets the
// scope of the transaction.
func endDeclaredWebhooks(ctx context.Context, q *db.Queries, id string) error {
	if err := q.SetScope(ctx, db.SetScopeParams{Tenant: id, UserID: allUsers}); err != nil {
		return err
	}
	names, err := q.DeleteDeclaredWebhooks(ctx, id)
	if err != nil || len(names) == 0 {
		return err
	}
	auditUser(ctx, q, id, 0, audit.WebhookDelete, names...)
	return nil
}
