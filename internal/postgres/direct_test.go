package postgres_test

import (
	"context"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

type idleArgs struct{}

func (idleArgs) Kind() string { return "idle" }

// named returns the URL of a connection with a name.
func named(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("application_name", name)
	u.RawQuery = query.Encode()
	return u.String()
}

// Beside a pooler, every LISTEN uses the direct URL, and queries do not.
func TestNotificationsBypassThePooler(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	db, err := postgres.Open(t.Context(), postgres.Config{
		URL: named(t, d.AppURL, "pooled"), DirectURL: named(t, d.AppURL, "direct"), Generation: postgrestest.Generation,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cache := make(recorder, 100)
	go func() { _ = db.Listen(t.Context(), cache) }()
	cache.want(t, "bypass false")
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, _ *river.Job[idleArgs]) error { return nil }))
	client, err := db.Jobs(&river.Config{Workers: workers, Queues: map[string]river.QueueConfig{"default": {MaxWorkers: 1}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Stop(contextWithoutCancel(t)) })
	if _, err := db.ActiveTenants(t.Context()); err != nil {
		t.Fatal(err)
	}
	owner, err := pgxpool.New(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	b := &testBundle{DB: db, owner: owner}
	deadline := time.After(patience)
	for tick := time.Tick(20 * time.Millisecond); ; {
		direct := b.count(t, "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'direct'")
		if direct >= 3 { // the cache's connection, the job queue's listener, and its pool
			break
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%d direct connections, want those of the cache and of the job queue", direct)
		}
	}
	if n := b.count(t, "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'pooled'"); n == 0 {
		t.Error("no query used the pooler")
	}
}
