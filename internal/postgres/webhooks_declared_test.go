package postgres_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
		{"an attempt without a connection", webhook.Progress{Attempts: 1, Message: webhook.NotConnected + ": no response"}, false},
		{"the connection", webhook.Progress{}, true},
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

// A webhook becomes ready after a connection to its address, although no event matches, and the operator learns the
// result. One with a refused address is never ready.
func TestDeclaredWebhookIsConnectedTo(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		allowed            []netip.Prefix
		connected, failing bool
	}{
		"reachable address": {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true, false},
		"refused address":   {nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			id := b.users[0].Tenant
			spec := webhook.Spec{Name: "a", URL: server.URL, Events: []string{"user.erase"}}
			change := func(do func()) {
				t.Helper()
				do()
				if all, err := b.DeclaredWebhooks(t.Context(), id); err != nil || all[0].Connected() || all[0].Failing() {
					t.Fatalf("webhooks %+v, %v, want one that is not connected yet", all, err)
				}
				notified := b.listenOperator(t)
				b.runDelivery(t, id, webhook.NewSender(c.allowed, time.Now))
				all, err := b.DeclaredWebhooks(t.Context(), id)
				if err != nil || all[0].Connected() != c.connected || all[0].Failing() != c.failing || !notified() {
					t.Errorf("webhooks %+v, %v, want connected %t and the operator notified", all, err, c.connected)
				}
			}
			change(func() { b.declare(t, id, spec, hookSecret) })
			spec.Events = []string{"audit.export"}
			change(func() { b.declare(t, id, spec, hookSecret) })
			change(func() {
				if err := b.ReplayWebhook(t.Context(), id, "a", time.Time{}); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// runDelivery runs the job of the only webhook of a tenant, as a server does.
func (b *testBundle) runDelivery(t *testing.T, id tenant.ID, s *webhook.Sender) {
	t.Helper()
	if err := b.SealRecords(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	if err := b.QueueDeliveries(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	jobs := b.hookJobs(t, id)
	if len(jobs) != 1 {
		t.Fatalf("jobs %v, want one", jobs)
	}
	d := webhook.Deliverer{Store: b, Sender: s, Log: slog.New(slog.DiscardHandler)}
	if err := d.Deliver(t.Context(), jobs[0]); err != nil {
		t.Fatal(err)
	}
	exec(t, b.owner, "delete from river_job where kind = 'webhook.deliver'")
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
