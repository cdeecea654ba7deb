package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// webhooksCommand groups the commands of webhooks (docs/webhooks.md). Those that a Tenant declares
// can be listed and replayed.
type webhooksCommand struct {
	Create createWebhookCommand `cmd:"" help:"Deliver the events of a tenant to a URL from now on, and print the secret that signs them."`
	List   listWebhooksCommand  `cmd:"" help:"List the webhooks of a tenant and their state."`
	Rotate rotateWebhookCommand `cmd:"" help:"Replace the secret of a webhook that no Tenant declares, and print the new one."`
	Replay replayWebhookCommand `cmd:"" help:"Deliver events again, or continue after a webhook was disabled."`
	Delete deleteWebhookCommand `cmd:"" help:"Delete a webhook that no Tenant declares."`
}

// webhookFlags select a webhook.
type webhookFlags struct {
	tenantFlags
	Name string `required:"" help:"Name of the webhook, unique within the tenant."`
}

type createWebhookCommand struct {
	webhookFlags
	Target string   `name:"url" required:"" help:"URL to which events are posted. http is allowed only for networks in --webhook-networks of the API servers."`
	Events []string `default:"*" help:"Events: verbs of the audit log such as memory.create, memory.* or *."`
}

// Run creates the webhook and prints its secret, which no other command prints.
func (c *createWebhookCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		secret, err := webhook.NewSecret(rand.Reader)
		if err != nil {
			return err
		}
		if err := db.CreateWebhook(ctx, id, webhook.Spec{Name: c.Name, URL: c.Target, Events: c.Events}, secret); err != nil {
			return err
		}
		_, err = fmt.Println(secret)
		return err
	})
}

type rotateWebhookCommand struct {
	webhookFlags
	Overlap time.Duration `default:"24h" help:"How long events are also signed with the previous secret."`
}

// Run replaces the secret and prints the new one.
func (c *rotateWebhookCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		secret, err := webhook.NewSecret(rand.Reader)
		if err != nil {
			return err
		}
		if err := db.RotateWebhook(ctx, id, c.Name, secret, c.Overlap); err != nil {
			return err
		}
		_, err = fmt.Println(secret)
		return err
	})
}

type replayWebhookCommand struct {
	webhookFlags
	Since time.Time `format:"2006-01-02T15:04:05Z07:00" help:"Deliver the events since this time again, such as 2026-05-04T09:00:00Z. Without it, delivery continues where it stopped."`
}

// Run moves the webhook and enables it.
func (c *replayWebhookCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error { return db.ReplayWebhook(ctx, id, c.Name, c.Since) })
}

type deleteWebhookCommand struct{ webhookFlags }

// Run deletes the webhook.
func (c *deleteWebhookCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error { return db.DeleteWebhook(ctx, id, c.Name) })
}

type listWebhooksCommand struct{ tenantFlags }

// Run prints the webhooks.
func (c *listWebhooksCommand) Run(ctx context.Context) error {
	return c.run(ctx, func(db *postgres.DB, id tenant.ID) error {
		all, err := db.Webhooks(ctx, id)
		if err != nil {
			return err
		}
		out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(out, "NAME\tOWNER\tSTATE\tWAITING\tSKIPPED\tEVENTS\tURL\tMESSAGE") // Flush returns the error
		for _, w := range all {
			_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", w.Name, webhookOwner(w), webhookState(w), w.Head-w.Position, w.Skipped,
				strings.Join(w.Events, ","), printable(w.URL), cmp.Or(w.Message, "-"))
		}
		return out.Flush()
	})
}

// webhookOwner says where the webhook is changed: in spec.webhooks of the Tenant, or by commands.
func webhookOwner(w webhook.Webhook) string {
	if w.Declared {
		return "Tenant"
	}
	return "command"
}

func webhookState(w webhook.Webhook) string {
	switch {
	case w.Disabled:
		return "disabled"
	case w.Paused():
		return "paused"
	case !w.FailingSince.IsZero():
		return "failing since " + w.FailingSince.UTC().Format(time.RFC3339)
	case !w.Connected():
		return "not connected"
	}
	return "active"
}
