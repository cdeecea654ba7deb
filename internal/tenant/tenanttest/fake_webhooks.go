package tenanttest

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// DeclaredWebhooks implements webhook.DeclaredStore.
func (f *Fake) DeclaredWebhooks(_ context.Context, id tenant.ID) (out []webhook.Webhook, err error) {
	defer f.begin("DeclaredWebhooks", &err)()
	if err != nil {
		return nil, err
	}
	if r := f.rows[id]; r != nil {
		out = slices.DeleteFunc(slices.Collect(maps.Values(r.webhooks)), func(w webhook.Webhook) bool { return !w.Declared })
		slices.SortFunc(out, func(a, b webhook.Webhook) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out, nil
}

// DeclareWebhook implements webhook.DeclaredStore.
func (f *Fake) DeclareWebhook(_ context.Context, id tenant.ID, s webhook.Spec, secret string, overlap time.Duration) (err error) {
	defer f.begin("DeclareWebhook", &err)()
	if err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	r, err := f.row(id)
	if err != nil {
		return nil // as in PostgreSQL: the next pass finds out
	}
	w := r.webhooks[s.Name]
	secrets := []string{secret}
	switch {
	case w.Declared && w.Secrets[0] == secret && reflect.DeepEqual(w.Spec, s):
		return nil
	case len(w.Secrets) > 0 && w.Secrets[0] == secret:
		secrets = w.Secrets
	case len(w.Secrets) > 0 && overlap > 0:
		secrets = append(secrets, w.Secrets[0])
	}
	r.webhooks[s.Name] = webhook.Webhook{
		Spec: s, Tenant: id, Secrets: secrets, Position: w.Position, Skipped: w.Skipped, Declared: true, Message: webhook.NotConnected,
	}
	return nil
}

// DeleteDeclaredWebhook implements webhook.DeclaredStore.
func (f *Fake) DeleteDeclaredWebhook(_ context.Context, id tenant.ID, name string) (err error) {
	defer f.begin("DeleteDeclaredWebhook", &err)()
	if err != nil {
		return err
	}
	if r := f.rows[id]; r != nil && r.webhooks[name].Declared {
		delete(r.webhooks, name)
	}
	return nil
}

// endDeclaredWebhooks deletes the declared webhooks after the Tenant was deleted.
func (r *row) endDeclaredWebhooks() {
	maps.DeleteFunc(r.webhooks, func(_ string, w webhook.Webhook) bool { return w.Declared })
}

// CreateWebhook stores a webhook as the command line does.
func (f *Fake) CreateWebhook(_ context.Context, id tenant.ID, s webhook.Spec, secret string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rows[id]
	if _, exists := r.webhooks[s.Name]; exists {
		return webhook.Exists(s.Name)
	}
	r.webhooks[s.Name] = webhook.Webhook{Spec: s, Tenant: id, Secrets: []string{secret}, Message: webhook.NotConnected}
	return nil
}

// Webhooks returns the webhooks of a tenant, by name.
func (f *Fake) Webhooks(_ context.Context, id tenant.ID) ([]webhook.Webhook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Collect(maps.Values(f.rows[id].webhooks))
	slices.SortFunc(out, func(a, b webhook.Webhook) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// SaveWebhook sets the state of a webhook, as deliveries do.
func (f *Fake) SaveWebhook(id tenant.ID, w webhook.Webhook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[id].webhooks[w.Name] = w
}
