package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

func compare(t *testing.T, r prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestDriftIsForgotten(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	now := time.Now()
	m.drift.now = func() time.Time { return now }
	m.Swept(retrieve.Drift{Missing: 3})
	const told = `
# HELP mnemo_index_drift Differences between the stores that the last sweep of this process found and repaired: missing from the vector store, or orphaned in it.
# TYPE mnemo_index_drift gauge
mnemo_index_drift{kind="missing"} 3
mnemo_index_drift{kind="orphaned"} 0
`
	const counted = `
# HELP mnemo_index_sweeps_total Sweeps of this process that compared the stores, by whether they found a difference: clean or drift.
# TYPE mnemo_index_sweeps_total counter
mnemo_index_sweeps_total{found="clean"} 0
mnemo_index_sweeps_total{found="drift"} 1
`
	compare(t, r, told, "mnemo_index_drift")
	compare(t, r, counted, "mnemo_index_sweeps_total")
	now = now.Add(driftLife)
	compare(t, r, "", "mnemo_index_drift") // another replica knows better by now
	m.Swept(retrieve.Drift{})
	compare(t, r, strings.Replace(told, "} 3", "} 0", 1), "mnemo_index_drift")
}

// fake is an embedder that fails when told.
type fake struct{ err error }

func (f *fake) Embed(context.Context, []string) ([][]float32, error) { return [][]float32{{1}}, f.err }
func (*fake) Model() string                                          { return "fake" }
func (*fake) Dimensions() int                                        { return 1 }

func TestEmbedderIsWatched(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m, inner := NewMetrics(r), &fake{}
	e := m.Embedder(inner)
	up := func(want float64) {
		t.Helper()
		if got := testutil.ToFloat64(m.up.WithLabelValues("embedder")); got != want {
			t.Errorf("mnemo_dependency_up is %v, want %v", got, want)
		}
	}
	if _, err := e.Embed(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	up(1)
	inner.err = errors.New("away")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = e.Embed(gone, []string{"a"}) // whoever asked went away
	up(1)
	if _, err := e.Embed(t.Context(), []string{"a"}); err == nil {
		t.Error("the error was lost")
	}
	up(0)
	if got := testutil.ToFloat64(m.embedded); got != 2 {
		t.Errorf("%v texts embedded, want 2", got)
	}
}

func TestStoreAwayIsAGap(t *testing.T) {
	t.Parallel()
	away := true
	r := prometheus.NewRegistry()
	r.MustRegister(NewStoreCollector(func(context.Context) (StoreStats, error) {
		if away {
			return StoreStats{}, errors.New("away")
		}
		return StoreStats{
			Jobs:    []JobStats{{Kind: "index.sync", Queued: 2, Running: 1, Oldest: time.Minute}},
			Tenants: []TenantStats{{Tenant: "ns/acme", Used: map[string]int64{"memories": 3}, Hard: map[string]int64{"memories": 5}, Blocked: 7}},
		}, nil
	}, func() PoolStats { return PoolStats{Used: 20, Max: 20, Waits: 4, Waited: 3 * time.Second} }, slog.New(slog.DiscardHandler)))
	// That no connection is left is a reason for which the database cannot be asked.
	compare(t, r, `
# HELP mnemo_database_connection_wait_seconds_total Time spent waiting for connections.
# TYPE mnemo_database_connection_wait_seconds_total counter
mnemo_database_connection_wait_seconds_total 3
# HELP mnemo_database_connection_waits_total Times a request or job had to wait for a connection.
# TYPE mnemo_database_connection_waits_total counter
mnemo_database_connection_waits_total 4
# HELP mnemo_database_connections Connections of this process to PostgreSQL, by state: used or idle.
# TYPE mnemo_database_connections gauge
mnemo_database_connections{state="idle"} 0
mnemo_database_connections{state="used"} 20
# HELP mnemo_database_connections_max Most connections of this process to PostgreSQL.
# TYPE mnemo_database_connections_max gauge
mnemo_database_connections_max 20
`)
	away = false
	compare(t, r, `
# HELP mnemo_jobs Jobs that are not done, by kind and state: queued or running.
# TYPE mnemo_jobs gauge
mnemo_jobs{kind="index.sync",state="queued"} 2
mnemo_jobs{kind="index.sync",state="running"} 1
# HELP mnemo_tenant_blocked_conversations Conversations of a tenant that are kept beyond its quota.
# TYPE mnemo_tenant_blocked_conversations gauge
mnemo_tenant_blocked_conversations{tenant="ns/acme"} 7
# HELP mnemo_tenant_quota_hard What a tenant may hold.
# TYPE mnemo_tenant_quota_hard gauge
mnemo_tenant_quota_hard{resource="memories",tenant="ns/acme"} 5
# HELP mnemo_tenant_quota_used What a tenant holds, of the tenants nearest to their quotas.
# TYPE mnemo_tenant_quota_used gauge
mnemo_tenant_quota_used{resource="memories",tenant="ns/acme"} 3
`, "mnemo_jobs", "mnemo_tenant_quota_used", "mnemo_tenant_quota_hard", "mnemo_tenant_blocked_conversations")
}

// files is where imports go, and fails when told.
type files struct {
	chat.ImportFiles
	err error
}

func (f *files) Land(context.Context, chat.ImportRun, chat.Batch, chat.Tools) error { return f.err }
func (f *files) Finish(context.Context, chat.ImportRun, string, []string) error     { return f.err }

func TestImportsAreCountedOnce(t *testing.T) {
	t.Parallel()
	m, inner := NewMetrics(prometheus.NewRegistry()), &files{err: chat.ErrLost}
	counted := m.Imports(inner)
	batch := chat.Batch{Entries: []chat.Entry{{}, {}, {Outcome: chat.EntryFailed}}}
	for range 2 { // first by a worker that has lost it
		_ = counted.Land(t.Context(), chat.ImportRun{}, batch, chat.Tools{})
		_ = counted.Finish(t.Context(), chat.ImportRun{}, "", nil)
		inner.err = nil
	}
	if got := testutil.ToFloat64(m.landed.WithLabelValues(stored)); got != 2 {
		t.Errorf("%v stored, want 2", got)
	}
	if got := testutil.ToFloat64(m.imports.WithLabelValues("done")); got != 1 {
		t.Errorf("%v imports done, want 1", got)
	}
}
