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

// alertsFire brings about what each alert is for and waits until its expression
// fires. How long it has to (`for`) is held by promtool, in charts/testdata.
func alertsFire(t *testing.T, w *watch, token string) {
	w.wantSilence(t)
	db := database(t)
	expireSoon(t, db, 10*24*time.Hour)
	tenantsInTrouble(t)
	jobsInTrouble(t, db)
	w.wantAlert(t, "a Tenant holds 10 memories and may hold 10", "MnemoQuotaNearFull")
	w.wantAlert(t, "120 conversations are imported into a Tenant that may have none; compared with a minute ago instead of 6 h",
		"MnemoBlockedConversationsGrowing", "offset 6h", "offset 1m")
	w.wantAlert(t, "the Secret of a Tenant's user is there and is someone else's", "MnemoReconcileFailing")
	w.wantAlert(t, "10,001 jobs are put into the queue, due tomorrow", "MnemoJobBacklog")
	w.wantAlert(t, "jobs are put into the queue that are an hour old", "MnemoJobOverdue")
	w.wantAlert(t, "the job of a change of 10 minutes ago is put off to tomorrow", "MnemoIndexLag")
	execute(t, db, `insert into index_sweeps select tenant_id, now(), 0, now() - interval '7 hours' from placements
		on conflict (tenant_id) do update set began_at = excluded.began_at, swept_at = excluded.swept_at`)
	w.wantAlert(t, "every tenant was last swept 7 hours ago", "MnemoIndexSweepOverdue")
	execute(t, db, "update index_sweeps set swept_at = now()")
	w.wantAlert(t, "PostgreSQL is given a certificate for 10 days, and everyone connects anew", "MnemoCertificateExpiring")
	execute(t, db, "delete from river_job where metadata ? 'test'")
	hold := hang(t, "milvus")
	w.wantAlert(t, "Milvus' process is stopped (SIGSTOP)", "MnemoMilvusUnavailable")
	hold()
	jobsFail(t, w, db, token)
	w.wantNone(t, "MnemoMilvusUnavailable")
	drifting(t, w, db)
	databaseHangs(t, w, token)
	kubectl(t, "", "delete", "tenants", "taken", "full", "blocked", "--timeout=60s")
}

// tenantsInTrouble makes one that is full, one that has no room for
// conversations, and one whose Secret is someone else's.
func tenantsInTrouble(t *testing.T) {
	t.Helper()
	kubectl(t, "", "create", "secret", "generic", "taken-u-access", "--from-literal=token=mine")
	kubectl(t, tenant("taken", "{}"), "apply", "--filename", "-")
	full := connect(t, applyTenant(t, "full", `{"memories":10}`))
	for i := range 10 {
		if _, err := full.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: fmt.Sprintf("Locker %d is taken.", i)}); err != nil {
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

// conversations are so many, as Claude exports them.
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

// jobsInTrouble puts jobs into the queue that are many and old. Their metadata
// tell them from those the API servers made.
func jobsInTrouble(t *testing.T, db *pgx.Conn) {
	t.Helper()
	const insert = `insert into river_job (kind, args, max_attempts, metadata, state, created_at, scheduled_at) `
	execute(t, db, insert+`select 'tenant.rebalance', '{}', 25, '{"test": 1}', 'scheduled', now() - interval '1 hour', now() + interval '1 day'
		from generate_series(1, 10001)`)
	execute(t, db, insert+`select 'index.sync', '{}', 25, '{"test": 1}', 'scheduled', now() - interval '10 minutes', now() + interval '1 day'`)
}

// jobsFail stores memories while the app's role may not note that they are indexed.
func jobsFail(t *testing.T, w *watch, db *pgx.Conn, token string) {
	t.Helper()
	execute(t, db, "revoke update on units from mnemo_app")
	u := connect(t, token)
	for i := range 30 {
		if _, err := u.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: fmt.Sprintf("Shelf %d is dusted.", i)}); err != nil {
			t.Fatal(err)
		}
	}
	w.wantAlert(t, "30 memories are stored while the app's role has lost the right to update units", "MnemoJobsFailing")
	execute(t, db, "grant update on units to mnemo_app")
}

// drifting takes a row that is in the vector store out of PostgreSQL, as a
// backup of yesterday does, before each of three sweeps.
func drifting(t *testing.T, w *watch, db *pgx.Conn) {
	t.Helper()
	for range 3 {
		if n := execute(t, db, `delete from units where id = (select id from units where active and indexed_at is not null order by id limit 1)`); n != 1 {
			t.Fatalf("%d units were taken away, want one", n)
		}
		var id int64
		if err := db.QueryRow(t.Context(), `insert into river_job (kind, args, max_attempts, queue, state, metadata)
			values ('index.sweep', '{}', 1, 'backlog', 'available', '{"test": 1}') returning id`).Scan(&id); err != nil {
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
	w.wantAlert(t, "before each of three sweeps a row that Milvus holds is taken out of PostgreSQL", "MnemoIndexDriftNotConverging")
}

// databaseHangs stops PostgreSQL under requests, and then has them wait for it.
func databaseHangs(t *testing.T, w *watch, token string) {
	t.Helper()
	ask := startAsking(t, token)
	hold := hang(t, "postgres")
	w.wantAlert(t, "PostgreSQL's processes are stopped (SIGSTOP)", "MnemoPostgreSQLUnavailable")
	w.wantAlert(t, "PostgreSQL's processes are stopped", "MnemoTokenCacheBypassed")
	w.wantAlert(t, "PostgreSQL's processes are stopped under requests; over the last minute instead of 5", "MnemoAPIErrors", "[5m]", "[1m]")
	hold()
	w.wantAlert(t, "PostgreSQL resumes and completes the waiting requests; over the last minute instead of 5", "MnemoAPISlow", "[5m]", "[1m]")
	eventually(t, time.Minute, func() string {
		if got := ready(t, "api"); len(got) != 2 {
			return fmt.Sprintf("ready API servers %q, want both back", got)
		}
		return ""
	})
	poolExhausted(t, w)
	ask.stop()
}

// poolExhausted keeps every connection waiting for a lock, twice: that requests
// waited for a connection is known when they got one.
func poolExhausted(t *testing.T, w *watch) {
	t.Helper()
	db := database(t)
	execute(t, db, "begin")
	execute(t, db, "lock table memories")
	<-time.After(5 * time.Second)
	execute(t, db, "commit")
	execute(t, db, "begin")
	execute(t, db, "lock table memories")
	w.wantAlert(t, "someone holds a lock on the memories that are asked for, and has held it before; over the last minute instead of 5",
		"MnemoPostgreSQLPoolExhausted", "[5m]", "[1m]")
	execute(t, db, "commit")
}

// asking is many clients that list a user's memories, again and again.
type asking struct {
	done    atomic.Bool
	clients sync.WaitGroup
}

func startAsking(t *testing.T, token string) *asking {
	t.Helper()
	a := &asking{}
	t.Cleanup(a.stop)
	for range 80 {
		a.clients.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer c.CloseIdleConnections()
			l := load{token: token}
			for !a.done.Load() {
				_, _, _ = l.once(c, http.MethodGet, "/api/v2/memory?count=1", "", nil)
				<-time.After(250 * time.Millisecond)
			}
		})
	}
	return a
}

func (a *asking) stop() {
	a.done.Store(true)
	a.clients.Wait()
}
