package tenanttest

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// WebhookStore stores webhooks.
type WebhookStore interface {
	webhook.DeclaredStore
	// CreateWebhook creates one that is not declared.
	CreateWebhook(ctx context.Context, t tenant.ID, s webhook.Spec, secret string) error
	// Webhooks returns all of them, by name.
	Webhooks(ctx context.Context, t tenant.ID) ([]webhook.Webhook, error)
}

const (
	firstSecret  = "whsec_c2VjcmV0IG9mIGEgdGVzdCwgMzIgYnl0ZXMgbG9uZyE="
	secondSecret = "whsec_YW5vdGhlciBzZWNyZXQgb2YgYSB0ZXN0LCAzMiBieXRlcw=="
)

func hookSpec(name string) webhook.Spec {
	return webhook.Spec{Name: name, URL: "https://acme.test/events", Events: []string{"memory.*"}}
}

// wantDeclared compares the declared webhooks of the tenant.
func (f *fixture) wantDeclared(c check, want ...webhook.Webhook) {
	c.t.Helper()
	got, err := c.Webhooks.DeclaredWebhooks(c.t.Context(), f.got.ID)
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(webhook.Webhook{}, "Tenant", "Position", "Head", "Due")); diff != "" {
		c.t.Fatalf("declared webhooks (-want +got):\n%s", diff)
	}
}

func (f *fixture) declare(c check, s webhook.Spec, secret string, overlap time.Duration) {
	c.t.Helper()
	if err := c.Webhooks.DeclareWebhook(c.t.Context(), f.got.ID, s, secret, overlap); err != nil {
		c.t.Fatal(err)
	}
}

func declaresWebhooks(c check) {
	f, other := applyTenant(c.t, c.Backend), applyTenant(c.t, c.Backend)
	a, b := hookSpec("a"), hookSpec("b.1")
	if err := c.Webhooks.CreateWebhook(c.t.Context(), f.got.ID, a, firstSecret); err != nil {
		c.t.Fatal(err)
	}
	f.wantDeclared(c)
	f.declare(c, b, firstSecret, 0)
	f.wantDeclared(c, webhook.Webhook{Spec: b, Secrets: []string{firstSecret}, Declared: true, Message: webhook.NotConnected})
	other.wantDeclared(c)

	a.URL = "https://acme.test/taken-over"
	f.declare(c, a, secondSecret, time.Hour)
	b.Events = []string{"*"}
	for range 2 {
		f.declare(c, b, secondSecret, 0)
	}
	f.wantDeclared(c, webhook.Webhook{Spec: a, Secrets: []string{secondSecret, firstSecret}, Declared: true, Message: webhook.NotConnected},
		webhook.Webhook{Spec: b, Secrets: []string{secondSecret}, Declared: true, Message: webhook.NotConnected})
	a.URL = "acme"
	wantKind(c.t, c.Webhooks.DeclareWebhook(c.t.Context(), f.got.ID, a, secondSecret, 0), fault.Invalid)

	for _, of := range []*fixture{other, f, f} {
		if err := c.Webhooks.DeleteDeclaredWebhook(c.t.Context(), of.got.ID, "a"); err != nil {
			c.t.Fatal(err)
		}
	}
	f.wantDeclared(c, webhook.Webhook{Spec: b, Secrets: []string{secondSecret}, Declared: true, Message: webhook.NotConnected})
}

// endsWebhooks checks that declared webhooks end with the Tenant, and that the others stay.
func endsWebhooks(c check) {
	for name, end := range map[string]func(*fixture){
		"retired": func(f *fixture) { f.retire(c.t, tenant.Retain) },
		"orphaned": func(f *fixture) {
			if err := c.Records.MarkOrphaned(c.t.Context(), f.got.ID); err != nil {
				c.t.Fatalf("MarkOrphaned: %v", err)
			}
		},
	} {
		f, other := applyTenant(c.t, c.Backend), applyTenant(c.t, c.Backend)
		declared, created := hookSpec("a"), hookSpec("b")
		f.declare(c, declared, firstSecret, 0)
		other.declare(c, declared, firstSecret, 0)
		for _, s := range []webhook.Spec{declared, created} {
			err := c.Webhooks.CreateWebhook(c.t.Context(), f.got.ID, s, firstSecret)
			if s.Name == created.Name && err != nil || s.Name == declared.Name && !fault.Is(err, fault.Conflict) {
				c.t.Fatalf("%s: create %s: %v", name, s.Name, err)
			}
		}
		end(f)
		f.wantDeclared(c)
		if all, err := c.Webhooks.Webhooks(c.t.Context(), f.got.ID); err != nil || len(all) != 1 {
			c.t.Errorf("%s: webhooks %+v, %v, want one", name, all, err)
		}
		other.wantDeclared(c, webhook.Webhook{Spec: declared, Secrets: []string{firstSecret}, Declared: true, Message: webhook.NotConnected})
	}
}
