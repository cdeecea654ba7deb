package postgres_test

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

var declared = webhook.Spec{Name: "a", URL: "https://example.com/declared", Events: []string{"memory.*"}}

func (b *testBundle) declare(t *testing.T, id tenant.ID, s webhook.Spec, secret string) {
	t.Helper()
	if err := b.DeclareWebhook(t.Context(), id, s, secret, 0); err != nil {
		t.Fatal(err)
	}
}

// The command line replays declared webhooks and changes nothing else of them.
func TestDeclaredWebhookIsProtected(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.declare(t, id, declared, hookSecret)
	for name, err := range map[string]error{
		"create": b.CreateWebhook(t.Context(), id, declared, hookSecret),
		"rotate": b.RotateWebhook(t.Context(), id, "a", hookSecret, 0),
		"delete": b.DeleteWebhook(t.Context(), id, "a"),
	} {
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v, want Conflict", name, err)
		}
	}
	if err := b.ReplayWebhook(t.Context(), id, "a", time.Time{}); err != nil {
		t.Error(err)
	}
	if err := b.DeleteWebhook(t.Context(), b.users[2].Tenant, "a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("of another tenant: %v, want NotFound", err)
	}
}

// A change keeps the position and enables the webhook; the same declaration writes nothing.
func TestDeclaredWebhookIsUpdated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.remember(t, b.users[0], "before the webhook", nil)
	b.declare(t, id, declared, hookSecret)
	memory := b.remember(t, b.users[0], "after it", nil)
	w, records := b.nextEvents(t, id, "a")
	if n := len(records); n != 2 || records[1].Objects[0] != memory {
		t.Fatalf("records %v, want the creations of the webhook and of the memory", verbsOf(records))
	}
	failed := webhook.Progress{From: w.Position, To: w.Position, Attempts: 10, Disabled: true, Message: "status 500"}
	b.save(t, w, failed, true)
	b.declare(t, id, declared, hookSecret)
	if now, _ := b.nextEvents(t, id, "a"); !now.Disabled {
		t.Error("the same declaration enabled the webhook")
	}
	changed := declared
	changed.URL = "https://example.com/changed"
	b.declare(t, id, changed, hookSecret)
	now, records := b.nextEvents(t, id, "a")
	if now.Failing() || now.Position != w.Position || now.URL != changed.URL {
		t.Errorf("webhook %+v, want an enabled one at position %d", now, w.Position)
	}
	if last := verbsOf(records)[len(records)-1]; last != "webhook.update of " {
		t.Errorf("the last record is %s", last)
	}
}

// The operator is notified when the state in the status of the Tenant changes, and only then.
func TestDeclaredWebhookNotifiesOperator(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.declare(t, id, declared, hookSecret)
	notified := b.listenOperator(t)
	w, _ := b.nextEvents(t, id, "a")
	for _, s := range []struct {
		reason string
		webhook.Progress
		want bool
	}{
		{"the first failure", webhook.Progress{Attempts: 1}, false},
		{"the second one", webhook.Progress{Attempts: 2}, true},
		{"the third one", webhook.Progress{Attempts: 3}, false},
		{"a success", webhook.Progress{}, true},
		{"another one", webhook.Progress{}, false},
		{"gone", webhook.Progress{Attempts: 1, Disabled: true}, true},
	} {
		s.From, s.To = w.Position, w.Position
		w = b.save(t, w, s.Progress, true)
		if got := notified(); got != s.want {
			t.Errorf("%s: notified %t, want %t", s.reason, got, s.want)
		}
	}
	if err := b.ReplayWebhook(t.Context(), id, "a", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if !notified() {
		t.Error("the operator was not notified of the replay")
	}
}

// listenOperator returns a function that reports whether the operator was notified since its last
// call.
func (b *testBundle) listenOperator(t *testing.T) func() bool {
	t.Helper()
	conn, err := b.owner.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), "listen mnemo_operator"); err != nil {
		t.Fatal(err)
	}
	return func() (notified bool) {
		t.Helper()
		exec(t, b.owner, "select pg_notify('mnemo_operator', 'end')")
		for {
			n, err := conn.Conn().WaitForNotification(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n.Payload == "end" {
				return notified
			}
			notified = true
		}
	}
}
