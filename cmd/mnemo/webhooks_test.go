package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// An administrator creates a webhook, rotates its secret and deletes it. Only the commands that
// make a secret print it.
func TestWebhookCommands(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	tn := e.apply(t, tenanttest.NewSpec())
	of := []string{"--tenant", tn.Namespace + "/" + tn.Name, "--name", "backend"}
	command := func(args ...string) []string { return append(append([]string{"webhooks"}, args...), of...) }

	secret := strings.TrimSpace(e.mnemo(t, command("create", "--url", "https://acme.example.com/mnemo", "--events", "memory.*,user.erase")...))
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(secret) {
		t.Errorf("the secret is %q", secret)
	}
	list := e.mnemo(t, "webhooks", "list", "--tenant", string(tn.ID))
	for _, want := range []string{"backend", "not connected", "memory.*,user.erase", "https://acme.example.com/mnemo"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	if strings.Contains(list, "whsec_") {
		t.Errorf("the list contains the secret:\n%s", list)
	}
	if rotated := strings.TrimSpace(e.mnemo(t, command("rotate")...)); rotated == secret {
		t.Error("the secret was not replaced")
	}
	e.expectError(t, "webhook backend already exists", command("create", "--url", "https://acme.example.com")...)
	e.expectError(t, "must be a URL", "webhooks", "create", "--tenant", string(tn.ID), "--name", "other", "--url", "acme")
	e.mnemo(t, command("replay", "--since", "2026-05-04T09:00:00Z")...)
	e.mnemo(t, command("delete")...)
	e.expectError(t, "has no webhook backend", command("replay")...)
}

// Webhooks of the Tenant are listed and replayed, and changed only there.
func TestDeclaredWebhookCommands(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	tn := e.apply(t, tenanttest.NewSpec())
	spec := webhook.Spec{Name: "backend", URL: "https://acme.example.com", Events: []string{"*"}}
	if err := e.db.DeclareWebhook(t.Context(), tn.ID, spec, "whsec_c2VjcmV0IG9mIGEgdGVzdCwgMzIgYnl0ZXMgbG9uZyE=", 0); err != nil {
		t.Fatal(err)
	}
	e.mnemo(t, "webhooks", "create", "--tenant", string(tn.ID), "--name", "own", "--url", "https://acme.example.com")
	list := e.mnemo(t, "webhooks", "list", "--tenant", string(tn.ID))
	if !regexp.MustCompile(`(?m)^backend +Tenant +not connected .*\n^own +command +not connected `).MatchString(list) {
		t.Errorf("the list is\n%s", list)
	}
	of := []string{"--tenant", string(tn.ID), "--name", "backend"}
	for _, command := range []string{"rotate", "delete"} {
		e.expectError(t, "the Tenant declares webhook backend; change spec.webhooks instead", append([]string{"webhooks", command}, of...)...)
	}
	e.mnemo(t, append([]string{"webhooks", "replay"}, of...)...)
}
