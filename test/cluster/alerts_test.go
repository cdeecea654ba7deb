package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/api/client"
)

// triggerAlerts causes the condition of each alert and waits until the alert's expression
// has a result. The promtool tests in charts/testdata cover the `for` durations.
func triggerAlerts(t *testing.T, m *monitor, token string) {
	m.wantNoActiveAlerts(t)
	db := database(t)
	failed := reconcileErrors(t, m)
	createFailingTenants(t)
	m.wantAlert(t, "a Secret that the operator does not own has the name of a user's Secret", "MnemoTenantStalled")
	// MnemoReconcileFailing may see errors of earlier steps, so compare the counter.
	if now := reconcileErrors(t, m); now != failed {
		t.Errorf("%v reconcile errors after a Tenant waits for its author, %v before: MnemoReconcileFailing would fire", now, failed)
	}
	replaceServerCertificate(t, db, 10*24*time.Hour)
	insertOverdueJobs(t, db)
	m.wantAlert(t, "a Tenant stores 10 memories with a quota of 10", "MnemoQuotaNearFull")
	m.wantAlert(t, "120 conversations are imported into a Tenant with a quota of 0; compared with 1 minute ago instead of 6 hours",
		"MnemoBlockedConversationsGrowing", "offset 6h", "offset 1m")
	makeReconciliationFail(t, m, db)
	m.wantAlert(t, "10,001 jobs scheduled for tomorrow are inserted into the queue", "MnemoJobBacklog")
	m.wantAlert(t, "jobs created an hour ago are inserted into the queue", "MnemoJobOverdue")
	m.wantAlert(t, "an index job created 10 minutes ago is scheduled for tomorrow", "MnemoIndexLag")
	execute(t, db, `insert into index_sweeps select tenant_id, now(), 0, now() - interval '7 hours' from placements
		on conflict (tenant_id) do update set began_at = excluded.began_at, swept_at = excluded.swept_at`)
	m.wantAlert(t, "every tenant was last swept 7 hours ago", "MnemoIndexSweepOverdue")
	execute(t, db, "update index_sweeps set swept_at = now()")
	execute(t, db, `insert into erasures (kind, tenant_id, at) values ('tenant', gen_random_uuid(), now() - interval '1 hour')`)
	m.wantAlert(t, "no recorder runs, and an erasure was recorded in the database an hour ago", "MnemoErasureLedgerLag")
	execute(t, db, "delete from erasures")
	leaveAuditUnsealed(t, m, db)
	execute(t, db, `insert into webhooks (tenant_id, name, url, events, secret, position, due_at, failing_since)
		select id, 'alert', 'https://example.com', '{*}', '', 0, now() + interval '1 day', now() - interval '1 hour' from tenants where state = 'active'`)
	m.wantAlert(t, "a webhook of each tenant has failed for an hour", "MnemoWebhookFailing")
	execute(t, db, "update webhooks set disabled = true where name = 'alert'")
	m.wantAlert(t, "webhooks were disabled after their last attempt", "MnemoWebhookDisabled")
	execute(t, db, "delete from webhooks where name = 'alert'")
	execute(t, db, `with absent as (
			insert into embedding_generations (name, model, dimensions) values ('mnemo_absent_1', 'absent', 1) returning id
		) insert into embedding_migrations (target_id, canary_percent, canary_seconds, rate, heartbeat_at)
		select id, 0, 0, 0, now() - interval '1 hour' from absent`)
	m.wantAlert(t, "a migration to a model that no API server is configured with was last worked on an hour ago", "MnemoEmbeddingMigrationStalled")
	execute(t, db, "update embedding_migrations set phase = 'rolled back', finished_at = now()")
	m.wantAlert(t, "a migration to another embedding model was rolled back", "MnemoEmbeddingMigrationRolledBack")
	execute(t, db, "delete from embedding_migrations")
	m.wantAlert(t, "the certificate of PostgreSQL is replaced by one that expires in 10 days, and all clients reconnect", "MnemoCertificateExpiring")
	execute(t, db, "delete from river_job where metadata ? 'test'")
	resume := suspend(t, "milvus")
	m.wantAlert(t, "the Milvus process is suspended (SIGSTOP)", "MnemoMilvusUnavailable")
	resume()
	makeJobsFail(t, m, db, token)
	m.wantResolved(t, "MnemoMilvusUnavailable")
	causeIndexDrift(t, m, db)
	disturbOperator(t, m)
	isolateReplica(t, m)
	suspendPostgreSQL(t, m, token)
	kubectl(t, "", "delete", "tenants", "taken", "full", "blocked", "--timeout=60s")
}

// leaveAuditUnsealed damages the hash chain of a tenant that does not exist, so that its
// record cannot be sealed.
func leaveAuditUnsealed(t *testing.T, m *monitor, db *pgx.Conn) {
	t.Helper()
	const tenant = "'0196b2f4-0000-7000-8000-00000000aaaa'"
	execute(t, db, `insert into audit_records (tenant_id, seq, prev, hash, at, actor, via, fingerprint, app, verb, objects)
		values (`+tenant+`, 1, '', '', now(), 'system', 'test', '', '', 'test', '{}')`)
	execute(t, db, `insert into audit_pending (tenant_id, at, actor, via, fingerprint, app, verb, objects)
		values (`+tenant+`, now() - interval '1 hour', 'system', 'test', '', '', 'test', '{}')`)
	m.wantAlert(t, "a sealed record that is not part of its tenant's chain blocks the next one, which is an hour old", "MnemoAuditUnsealed")
	execute(t, db, "delete from audit_pending where tenant_id = "+tenant)
	execute(t, db, "delete from audit_records where tenant_id = "+tenant)
}

// reconcileErrors returns the number of failed reconciliations.
func reconcileErrors(t *testing.T, m *monitor) float64 {
	t.Helper()
	found := m.Query(t, `sum(controller_runtime_reconcile_errors_total{controller="tenant"})`)
	if len(found) != 1 {
		t.Fatalf("%d values of the reconcile errors, want 1", len(found))
	}
	return found[0].Value
}

// createFailingTenants creates a Tenant at its memory quota, one with a conversation
// quota of 0, and one whose user's Secret name is in use.
func createFailingTenants(t *testing.T) {
	t.Helper()
	kubectl(t, "", "create", "secret", "generic", "taken-u-access", "--from-literal=token=mine")
	kubectl(t, tenant("taken", "{}"), "apply", "--filename", "-")
	full := connect(t, applyTenant(t, "full", `{"memories":10}`))
	for i := range 10 {
		if _, err := full.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: fmt.Sprintf("Locker %d is occupied.", i)}); err != nil {
			t.Fatal(err)
		}
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(file).Encode(conversations(120)); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	blocked := connect(t, applyTenant(t, "blocked", `{"conversations":0}`))
	if _, err := blocked.ImportFile(t.Context(), nil, form.FormDataContentType(), &body); err != nil {
		t.Fatal(err)
	}
}

// conversations returns n conversations in the format of a Claude export.
func conversations(n int) (all []map[string]any) {
	const at = "2026-03-01T09:00:00Z"
	for i := range n {
		all = append(all, map[string]any{
			"uuid": fmt.Sprint("talk-", i), "name": fmt.Sprint("Talk ", i), "created_at": at, "updated_at": at,
			"chat_messages": []map[string]any{{"uuid": fmt.Sprint("message-", i), "text": "Good morning!", "sender": "human", "created_at": at}},
		})
	}
	return all
}

// insertOverdueJobs inserts many old jobs into the queue. Their metadata distinguishes
// them from the jobs of the API servers.
func insertOverdueJobs(t *testing.T, db *pgx.Conn) {
	t.Helper()
	const insert = `insert into river_job (kind, args, max_attempts, metadata, state, created_at, scheduled_at) `
	execute(t, db, insert+`select 'tenant.rebalance', '{}', 25, '{"test": 1}', 'scheduled', now() - interval '1 hour', now() + interval '1 day'
		from generate_series(1, 10001)`)
	execute(t, db, insert+`select 'index.sync', '{}', 25, '{"test": 1}', 'scheduled', now() - interval '10 minutes', now() + interval '1 day'`)
}

// makeJobsFail stores memories while the application role has no privilege to mark units
// as indexed.
func makeJobsFail(t *testing.T, m *monitor, db *pgx.Conn, token string) {
	t.Helper()
	execute(t, db, "revoke update on units from mnemo_app")
	u := connect(t, token)
	for i := range 30 {
		if _, err := u.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: fmt.Sprintf("Shelf %d is dusted.", i)}); err != nil {
			t.Fatal(err)
		}
	}
	m.wantAlert(t, "30 memories are stored while the application role has no UPDATE privilege on units", "MnemoJobsFailing")
	execute(t, db, "grant update on units to mnemo_app")
}

// causeIndexDrift deletes an indexed row of one tenant from PostgreSQL before each of three sweeps,
// as restoring an older backup does.
func causeIndexDrift(t *testing.T, m *monitor, db *pgx.Conn) {
	t.Helper()
	for range 3 {
		if n := execute(t, db, `delete from units where id = (select min(u.id) from units u join tenants t on t.id = u.tenant_id
			where t.name = 'load' and u.active and u.indexed_at is not null)`); n != 1 {
			t.Fatalf("deleted %d units, want 1", n)
		}
		var id int64
		if err := db.QueryRow(t.Context(), `insert into river_job (kind, args, max_attempts, queue, state, metadata)
			values ('index.sweep', '{}', 1, 'periodic', 'available', '{"test": 1}') returning id`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, func() string {
			var state string
			if err := db.QueryRow(t.Context(), "select state::text from river_job where id = $1", id).Scan(&state); err != nil {
				t.Fatal(err)
			}
			if state != "completed" {
				return "the sweep is " + state
			}
			return ""
		})
	}
	m.wantAlert(t, "a row of one tenant that Milvus has indexed is deleted from PostgreSQL before each of three sweeps", "MnemoIndexDriftNotConverging")
}

// suspendPostgreSQL suspends PostgreSQL under load and resumes it while requests wait.
func suspendPostgreSQL(t *testing.T, m *monitor, token string) {
	t.Helper()
	polling := startPolling(t, token)
	resume := suspend(t, "postgres")
	m.wantAlert(t, "the PostgreSQL processes are suspended (SIGSTOP)", "MnemoPostgreSQLUnavailable")
	m.wantAlert(t, "the PostgreSQL processes are suspended", "MnemoTokenCacheBypassed")
	var over5m []string
	for _, window := range []string{"1h", "30m", "6h", "2h", "1d", "3d"} {
		over5m = append(over5m, "mnemo:availability_burn:rate"+window, "mnemo:availability_burn:rate5m")
	}
	const how = "the PostgreSQL processes are suspended under load; over 5 minutes instead of the longer windows"
	m.wantAlert(t, how, "MnemoAvailabilityFastBurn", over5m[:6]...)
	m.wantAlert(t, how, "MnemoAvailabilitySlowBurn", over5m[4:]...)
	wantUnavailable(t, token)
	if got := ready(t, "api"); len(got) != 2 {
		t.Errorf("ready API servers without PostgreSQL: %q, want 2", got)
	}
	resume()
	m.wantResolved(t, "MnemoPostgreSQLUnavailable")
	exhaustPool(t, m)
	polling.stop()
}

// exhaustPool makes every connection wait for a lock, twice: a request that waited for a
// connection is counted only after it gets one.
func exhaustPool(t *testing.T, m *monitor) {
	t.Helper()
	db := database(t)
	execute(t, db, "begin")
	execute(t, db, "lock table memories")
	<-time.After(5 * time.Second)
	execute(t, db, "commit")
	execute(t, db, "begin")
	execute(t, db, "lock table memories")
	m.wantAlert(t, "a transaction locks the table memories twice while clients read it; over 1 minute instead of 5",
		"MnemoPostgreSQLPoolExhausted", "[5m]", "[1m]")
	execute(t, db, "commit")
}

// polling is a set of clients that list memories repeatedly. They act for several users: a server works on few requests of
// one user at a time, so that no user exhausts the pool.
type polling struct {
	done    atomic.Bool
	clients sync.WaitGroup
}

func startPolling(t *testing.T, token string) *polling {
	t.Helper()
	tokens := []string{token}
	for n := range 9 {
		tokens = append(tokens, applyTenant(t, fmt.Sprintf("polling-%d", n), highQuota))
	}
	p := &polling{}
	t.Cleanup(p.stop)
	for n := range 80 {
		p.clients.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer c.CloseIdleConnections()
			l := load{token: tokens[n%len(tokens)]}
			for !p.done.Load() {
				_, _, _ = l.do(c, http.MethodGet, "/api/v2/memory?count=1", "", nil)
				<-time.After(250 * time.Millisecond)
			}
		})
	}
	return p
}

func (p *polling) stop() {
	p.done.Store(true)
	p.clients.Wait()
}
