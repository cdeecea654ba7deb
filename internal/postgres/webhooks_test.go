package postgres_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

const hookSecret = "whsec_c2VjcmV0IG9mIGEgdGVzdCwgMzIgYnl0ZXMgbG9uZyE="

// hook creates a webhook of a tenant that receives everything.
func (b *testBundle) hook(t *testing.T, id tenant.ID, name string) {
	t.Helper()
	spec := webhook.Spec{Name: name, URL: "https://example.com/events", Events: []string{"*"}}
	if err := b.CreateWebhook(t.Context(), id, spec, hookSecret); err != nil {
		t.Fatal(err)
	}
}

// nextEvents seals the records of a tenant and returns what the webhook has to deliver.
func (b *testBundle) nextEvents(t *testing.T, id tenant.ID, name string) (webhook.Webhook, []webhook.Record) {
	t.Helper()
	if err := b.SealRecords(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	w, records, err := b.NextRecords(t.Context(), webhook.Args{Tenant: id, Webhook: name}, always, 100)
	if err != nil {
		t.Fatal(err)
	}
	return w, records
}

// always is a lease within which every webhook is due, for a job without a claim.
const always = 1000 * time.Hour

// jobOf returns the job that has the claim of a webhook.
func jobOf(w webhook.Webhook) webhook.Args {
	return webhook.Args{Tenant: w.Tenant, Webhook: w.Name, Due: w.Due}
}

// save saves the progress of the job that has the claim of a webhook, which keeps it if keeps is true.
func (b *testBundle) save(t *testing.T, w webhook.Webhook, p webhook.Progress, keeps bool) webhook.Webhook {
	t.Helper()
	due, err := b.SaveProgress(t.Context(), jobOf(w), p)
	if err != nil || due.IsZero() == keeps {
		t.Fatalf("SaveProgress(%+v) = %s, %v, want a claim = %t", p, due, err, keeps)
	}
	if keeps {
		w.Position, w.Due = p.To, due
	}
	return w
}

func verbsOf(records []webhook.Record) (out []string) {
	for _, r := range records {
		out = append(out, string(r.Verb)+" of "+r.UserName)
	}
	return out
}

// A webhook receives the changes of its tenant after its creation, with the name of the user
// while the user exists, and nothing of other tenants.
func TestWebhookRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.remember(t, b.users[0], "before the webhook", nil)
	b.hook(t, id, "a")
	b.hook(t, b.users[2].Tenant, "other")
	memory := b.remember(t, b.users[0], "after it", nil)
	b.remember(t, b.users[2], "of another tenant", nil)

	_, records := b.nextEvents(t, id, "a")
	if diff := cmp.Diff([]string{"webhook.create of ", "memory.create of alice"}, verbsOf(records)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	created := records[1]
	if diff := cmp.Diff([]string{memory}, created.Objects); diff != "" || created.Tenant != id {
		t.Errorf("objects of tenant %s (-want +got):\n%s", created.Tenant, diff)
	}
	if _, again := b.nextEvents(t, id, "a"); again[1].ID() != created.ID() {
		t.Errorf("the id is %s and then %s", created.ID(), again[1].ID())
	}
	if err := b.EraseUser(t.Context(), b.users[0]); err != nil {
		t.Fatal(err)
	}
	_, records = b.nextEvents(t, id, "a")
	if records[1].UserName != "" || records[1].Record.User != created.Record.User {
		t.Errorf("after the erasure of the user, the record is %+v", records[1])
	}
	if _, _, err := b.NextRecords(t.Context(), webhook.Args{Tenant: b.users[2].Tenant, Webhook: "a"}, always, 10); !fault.Is(err, fault.NotFound) {
		t.Errorf("another tenant's webhook: %v, want NotFound", err)
	}
}

// A job is queued for a webhook while it has something to deliver and its wait is over, and only
// one at a time.
func TestWebhookJobs(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.hook(t, id, "a")
	w, _ := b.nextEvents(t, id, "a")
	queued := func(want int) {
		t.Helper()
		for range 2 {
			if err := b.QueueDeliveries(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.count(t, "select count(*) from river_job where kind = 'webhook.deliver' and args ->> 'tenant' = $1", id); n != want {
			t.Errorf("%d jobs, want %d", n, want)
		}
		exec(t, b.owner, "delete from river_job where kind = 'webhook.deliver'")
	}
	release := func() {
		t.Helper()
		if err := b.ReleaseWebhook(t.Context(), jobOf(w)); err != nil {
			t.Fatal(err)
		}
	}
	queued(0) // a job works on it
	release()
	queued(1)
	w, records := b.nextEvents(t, id, "a")
	w = b.save(t, w, webhook.Progress{From: w.Position, To: w.Position, Attempts: 1, Wait: time.Hour, Message: "status 500"}, true)
	release()
	queued(0)
	exec(t, b.owner, "update webhooks set due_at = now()")
	queued(1)
	w, _ = b.nextEvents(t, id, "a")
	b.save(t, w, webhook.Progress{From: w.Position + 100, To: w.Position + 101}, false) // changed meanwhile
	last := records[len(records)-1].Sequence
	w = b.save(t, w, webhook.Progress{From: w.Position, To: last, Wait: time.Minute}, true)
	queued(0)
	b.remember(t, b.users[0], "more", nil)
	w, _ = b.nextEvents(t, id, "a")
	queued(0) // a job works on it
	release()
	queued(1)
	w, _ = b.nextEvents(t, id, "a")
	w = b.save(t, w, webhook.Progress{From: w.Position, To: w.Position, Attempts: 10, Disabled: true, Message: "status 500"}, true)
	release()
	queued(0)
	stats, err := b.Stats(t.Context(), 1)
	if err != nil || stats.Webhooks.Disabled != 1 {
		t.Errorf("stats %+v, %v, want 1 disabled webhook", stats.Webhooks, err)
	}
}

// TestWebhookStats: a tenant counts once, however many of its webhooks fail, and only while it is active.
func TestWebhookStats(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	first, second := b.users[0].Tenant, b.users[2].Tenant
	for _, name := range []string{"a", "b", "c"} {
		b.hook(t, first, name)
	}
	b.hook(t, second, "a")
	expect := func(state string, want postgres.WebhookStats) {
		t.Helper()
		stats, err := b.Stats(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stats.Webhooks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", state, diff)
		}
	}
	expect("all deliver", postgres.WebhookStats{DeliveringTenants: 2})
	exec(t, b.owner, "update webhooks set failing_since = now() - interval '14 minutes' where tenant_id = $1", second)
	exec(t, b.owner, "update webhooks set failing_since = now() - interval '16 minutes' where tenant_id = $1 and name <> 'c'", first)
	expect("two of a tenant fail", postgres.WebhookStats{Failing: 2, FailingTenants: 1, DeliveringTenants: 1})
	exec(t, b.owner, "update webhooks set disabled = true where tenant_id = $1 and name <> 'c'", first)
	expect("they are disabled", postgres.WebhookStats{Disabled: 2, DeliveringTenants: 2})
	exec(t, b.owner, "update webhooks set disabled = true where tenant_id = $1", first)
	expect("all of a tenant are disabled", postgres.WebhookStats{Disabled: 3, DeliveringTenants: 1})
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	expect("the tenant is retained", postgres.WebhookStats{DeliveringTenants: 1})
}

// hookJobs returns the queued jobs of a tenant's webhooks, oldest first.
func (b *testBundle) hookJobs(t *testing.T, id tenant.ID) (out []webhook.Args) {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `select args::text from river_job
		where kind = 'webhook.deliver' and args ->> 'tenant' = $1 and state = 'available' order by id`, string(id))
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		var a webhook.Args
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// A job that is queued for longer than its claim gets the next one. Of a job that runs without a claim and the one that has it, only
// the latter works, and not before the wait for the next attempt is over. The webhook of the other tenant is delivered meanwhile.
func TestWebhookClaims(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, other := b.users[0].Tenant, b.users[2].Tenant
	for _, of := range []tenant.ID{id, other} {
		b.hook(t, of, "a")
		if err := b.SealRecords(t.Context(), of, true); err != nil {
			t.Fatal(err)
		}
	}
	queue := func() webhook.Args {
		t.Helper()
		exec(t, b.owner, "update webhooks set due_at = now() - interval '1 second'") // the claims end
		if err := b.QueueDeliveries(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		jobs := b.hookJobs(t, id)
		if len(jobs) != 1 || b.count(t, "select count(*) from webhooks where tenant_id = $1 and due_at = $2", string(id), jobs[0].Due) != 1 {
			t.Fatalf("queued jobs %+v, want one with the claim of the webhook", jobs)
		}
		return jobs[0]
	}
	next := func(job webhook.Args, works bool) webhook.Webhook {
		t.Helper()
		w, records, err := b.NextRecords(t.Context(), job, time.Minute, 100)
		if works && (err != nil || len(records) == 0) || !works && !fault.Is(err, fault.NotFound) {
			t.Fatalf("NextRecords(%+v) = %d records, %v, want some = %t", job, len(records), err, works)
		}
		return w
	}
	queue()
	first := queue()
	exec(t, b.owner, "update river_job set state = 'running'")
	second := queue()
	exec(t, b.owner, "update river_job set state = 'running'")
	next(first, false)
	w := next(second, true)
	next(second, false) // it has another claim now
	failed := webhook.Progress{From: w.Position, To: w.Position, Attempts: 1, Wait: time.Hour, Message: "status 500"}
	b.save(t, webhook.Webhook{Spec: w.Spec, Tenant: id, Due: first.Due}, failed, false)
	w = b.save(t, w, failed, true)
	for _, job := range []webhook.Args{first, second, {Tenant: id, Webhook: "a"}} {
		next(job, false)
		if err := b.ReleaseWebhook(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.ReleaseWebhook(t.Context(), jobOf(w)); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select count(*) from webhooks where tenant_id = $1 and due_at = $2", string(id), w.Due); n != 1 {
		t.Error("the webhook does not wait for the next attempt")
	}
	next(webhook.Args{Tenant: other, Webhook: "a"}, true) // a job of an earlier version
}

// A replay begins at a time and enables the webhook; without a time it continues.
func TestWebhookReplay(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.hook(t, id, "a")
	b.remember(t, b.users[0], "old", nil)
	_, records := b.nextEvents(t, id, "a")
	exec(t, b.owner, "update audit_records set at = at - interval '2 hours'")
	b.remember(t, b.users[0], "new", nil)
	_, all := b.nextEvents(t, id, "a")
	end := all[len(all)-1].Sequence
	w, _ := b.nextEvents(t, id, "a")
	b.save(t, w, webhook.Progress{From: w.Position, To: end, Attempts: 10, Disabled: true}, true)
	for name, c := range map[string]struct {
		since time.Time
		want  []string
	}{
		"without a time": {time.Time{}, nil},
		"since an hour":  {time.Now().Add(-time.Hour), []string{"memory.create of alice"}},
		"since a day":    {time.Now().Add(-24 * time.Hour), verbsOf(append(records[:0:0], all...))},
		"in the future":  {time.Now().Add(time.Hour), nil},
	} {
		exec(t, b.owner, "update webhooks set disabled = true, position = $1", end)
		if err := b.ReplayWebhook(t.Context(), id, "a", c.since); err != nil {
			t.Fatal(err)
		}
		got, list, err := b.NextRecords(t.Context(), webhook.Args{Tenant: id, Webhook: "a"}, always, 100)
		if err != nil || got.Disabled {
			t.Errorf("%s: disabled %t, %v", name, got.Disabled, err)
		}
		if name == "since a day" {
			list = list[len(list)-len(all):] // also what precedes the webhook
		}
		if diff := cmp.Diff(c.want, verbsOf(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, list := b.nextEvents(t, id, "a")
	if n := len(list); n == 0 || list[n-1].Verb != audit.WebhookReplay {
		t.Errorf("the last record is not a replay: %v", verbsOf(list))
	}
}

// The previous secret signs during the overlap. A webhook is deleted with its tenant.
func TestWebhookSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.hook(t, id, "a")
	const next = "whsec_YW5vdGhlciBzZWNyZXQgb2YgYSB0ZXN0LCAzMiBieXRlcw=="
	if err := b.RotateWebhook(t.Context(), id, "a", next, time.Hour); err != nil {
		t.Fatal(err)
	}
	w, _ := b.nextEvents(t, id, "a")
	if diff := cmp.Diff([]string{next, hookSecret}, w.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	exec(t, b.owner, "update webhooks set previous_until = now()")
	if w, _ = b.nextEvents(t, id, "a"); len(w.Secrets) != 1 {
		t.Errorf("%d secrets after the overlap", len(w.Secrets))
	}
	spec := webhook.Spec{Name: "a", URL: "https://example.com", Events: []string{"*"}}
	if err := b.CreateWebhook(t.Context(), id, spec, next); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second webhook of the name: %v, want Conflict", err)
	}
	for _, err := range []error{
		b.RotateWebhook(t.Context(), b.users[2].Tenant, "a", next, 0), b.ReplayWebhook(t.Context(), b.users[2].Tenant, "a", time.Time{}),
		b.DeleteWebhook(t.Context(), b.users[2].Tenant, "a"),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("a change by another tenant: %v, want NotFound", err)
		}
	}
	b.hook(t, id, "b")
	if err := b.DeleteWebhook(t.Context(), id, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	workJobs(t, b.DB, b.owner)
	if n := b.count(t, "select count(*) from webhooks"); n != 0 {
		t.Errorf("%d webhooks remain after the deletion of the tenant", n)
	}
}

// The webhooks of a tenant that was copied deliver nothing after it is retired here, not even from a job that is running. They do
// not count as failing, and continue if a Tenant adopts the data. Those of the other tenant are delivered.
func TestRetiredCopyPausesWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, other := b.users[0].Tenant, b.users[2].Tenant
	for _, of := range []tenant.ID{id, other} {
		b.hook(t, of, "a")
		b.hook(t, of, "failing")
		w, _ := b.nextEvents(t, of, "failing")
		b.save(t, w, webhook.Progress{From: w.Position, To: w.Position, Attempts: 3, Wait: time.Hour}, true)
	}
	running, _ := b.nextEvents(t, id, "a")
	exec(t, b.owner, "update webhooks set failing_since = now() - interval '1 hour' where tenant_id = $1 and name = 'failing'", string(id))
	if err := b.RetireCopied(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.save(t, running, webhook.Progress{From: running.Position, To: running.Position + 1, Wait: time.Minute}, false)
	queued := func(of tenant.ID, want ...string) {
		t.Helper()
		b.auditOf(t, of) // seals the records
		if err := b.QueueDeliveries(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, job := range b.hookJobs(t, of) {
			got = append(got, job.Webhook)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("webhooks with a job (-want +got):\n%s", diff)
		}
	}
	queued(id)
	queued(other, "a")
	all, err := b.Webhooks(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		if !w.Paused() || w.Failing() {
			t.Errorf("webhook %+v, want a paused one that does not fail", w)
		}
	}
	if stats, err := b.Stats(t.Context(), 1); err != nil || stats.Webhooks.Failing != 0 || stats.Webhooks.Disabled != 0 {
		t.Errorf("stats %+v, %v, want no failing webhook", stats.Webhooks, err)
	}
	if _, err := b.Apply(t.Context(), b.specs[0]); err != nil {
		t.Fatal(err)
	}
	queued(id, "a", "failing")
}
