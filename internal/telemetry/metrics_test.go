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

	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
)

func expectMetrics(t *testing.T, r prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestDriftExpires(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	now := time.Now()
	m.drift.now = func() time.Time { return now }
	m.ObserveSweep(indexing.Drift{Missing: 3})
	const drift = `
# HELP mnemo_index_drift_units Units found and repaired by the last sweep of this process, by kind: missing from the vector index (or not confirmed) or orphaned in it.
# TYPE mnemo_index_drift_units gauge
mnemo_index_drift_units{kind="missing"} 3
mnemo_index_drift_units{kind="orphaned"} 0
`
	const sweeps = `
# HELP mnemo_index_sweeps_total Sweeps that compared the vector index with the database, by outcome: consistent or drift.
# TYPE mnemo_index_sweeps_total counter
mnemo_index_sweeps_total{outcome="consistent"} 0
mnemo_index_sweeps_total{outcome="drift"} 1
`
	expectMetrics(t, r, drift, "mnemo_index_drift_units")
	expectMetrics(t, r, sweeps, "mnemo_index_sweeps_total")
	now = now.Add(driftLife)
	expectMetrics(t, r, "", "mnemo_index_drift_units") // another replica has swept since
	m.ObserveSweep(indexing.Drift{})
	expectMetrics(t, r, strings.Replace(drift, "} 3", "} 0", 1), "mnemo_index_drift_units")
}

// fakeEmbedder fails with err.
type fakeEmbedder struct{ err error }

func (f *fakeEmbedder) Embed(context.Context, []string) ([][]float32, error) {
	return [][]float32{{1}}, f.err
}
func (f *fakeEmbedder) EmbedQuery(context.Context, string) ([]float32, error) {
	return []float32{1}, f.err
}
func (*fakeEmbedder) Model() string   { return "fake" }
func (*fakeEmbedder) Dimensions() int { return 1 }

func TestEmbedderMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m, inner := NewMetrics(r), &fakeEmbedder{}
	e := m.Embedder(inner)
	expectUp := func(want float64) {
		t.Helper()
		if got := testutil.ToFloat64(m.dependencyUp.WithLabelValues("embedder")); got != want {
			t.Errorf("mnemo_dependency_up is %v, want %v", got, want)
		}
	}
	if _, err := e.Embed(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	expectUp(1)
	inner.err = errors.New("unavailable")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = e.Embed(canceled, []string{"a"}) // says nothing about the embedder
	expectUp(1)
	if _, err := e.Embed(t.Context(), []string{"a"}); err == nil {
		t.Error("Embed succeeded, want the error of the inner embedder")
	}
	expectUp(0)
	if got := testutil.ToFloat64(m.embeddedTexts); got != 2 {
		t.Errorf("%v texts embedded, want 2", got)
	}
}

// An embedder that refuses a text is available.
func TestRefusedTextIsNoOutage(t *testing.T) {
	t.Parallel()
	m, inner := NewMetrics(prometheus.NewRegistry()), &fakeEmbedder{err: refusedError{}}
	if _, err := m.Embedder(inner).EmbedQuery(t.Context(), "long"); err == nil {
		t.Error("EmbedQuery succeeded, want the error of the inner embedder")
	}
	if got := testutil.ToFloat64(m.dependencyUp.WithLabelValues("embedder")); got != 1 {
		t.Errorf("mnemo_dependency_up is %v, want 1", got)
	}
	if got := testutil.ToFloat64(m.refusedTexts); got != 1 {
		t.Errorf("%v texts refused, want 1", got)
	}
}

func TestUnavailableStoreIsAGap(t *testing.T) {
	t.Parallel()
	unavailable := true
	r := prometheus.NewRegistry()
	r.MustRegister(NewStoreCollector(func(context.Context) (StoreStats, error) {
		if unavailable {
			return StoreStats{}, errors.New("unavailable")
		}
		return StoreStats{
			Jobs:    []JobStats{{Kind: "index.sync", Queued: 2, Running: 1, Oldest: time.Minute}},
			Tenants: []TenantStats{{Tenant: "ns/acme", Used: map[string]int64{"memories": 3}, Hard: map[string]int64{"memories": 5}, Blocked: 7}},
		}, nil
	}, func() PoolStats { return PoolStats{Used: 20, Max: 20, Waits: 4, Waited: 3 * time.Second} }, slog.New(slog.DiscardHandler)))
	// An exhausted pool is one reason why the query fails.
	expectMetrics(t, r, `
# HELP mnemo_database_connection_wait_seconds_total Time spent waiting for a connection to PostgreSQL.
# TYPE mnemo_database_connection_wait_seconds_total counter
mnemo_database_connection_wait_seconds_total 3
# HELP mnemo_database_connection_waits_total Acquisitions that waited for a connection to PostgreSQL.
# TYPE mnemo_database_connection_waits_total counter
mnemo_database_connection_waits_total 4
# HELP mnemo_database_connections Connections in the pool to PostgreSQL, by state: used or idle.
# TYPE mnemo_database_connections gauge
mnemo_database_connections{state="idle"} 0
mnemo_database_connections{state="used"} 20
# HELP mnemo_database_connections_max Maximum number of connections in the pool to PostgreSQL.
# TYPE mnemo_database_connections_max gauge
mnemo_database_connections_max 20
`)
	unavailable = false
	expectMetrics(t, r, `
# HELP mnemo_jobs Unfinished jobs, by kind and state: queued or running.
# TYPE mnemo_jobs gauge
mnemo_jobs{kind="index.sync",state="queued"} 2
mnemo_jobs{kind="index.sync",state="running"} 1
# HELP mnemo_tenant_blocked_conversations Conversations of a tenant that are stored but not searchable because they are over quota.
# TYPE mnemo_tenant_blocked_conversations gauge
mnemo_tenant_blocked_conversations{tenant="ns/acme"} 7
# HELP mnemo_tenant_quota_limit Quota of a tenant, for the tenants with the highest relative usage.
# TYPE mnemo_tenant_quota_limit gauge
mnemo_tenant_quota_limit{resource="memories",tenant="ns/acme"} 5
# HELP mnemo_tenant_quota_used Usage of a quota, for the tenants with the highest relative usage.
# TYPE mnemo_tenant_quota_used gauge
mnemo_tenant_quota_used{resource="memories",tenant="ns/acme"} 3
`, "mnemo_jobs", "mnemo_tenant_quota_used", "mnemo_tenant_quota_limit", "mnemo_tenant_blocked_conversations")
}

// fakeImports fails with err.
type fakeImports struct {
	importer.Files
	err error
}

func (f *fakeImports) StoreBatch(context.Context, importer.Run, importer.Batch) (importer.Batch, error) {
	return importer.Batch{}, f.err
}

func (f *fakeImports) Finish(context.Context, importer.Run, string, []string) error { return f.err }

func TestImportsAreCountedOnceAcrossWorkers(t *testing.T) {
	t.Parallel()
	m, inner := NewMetrics(prometheus.NewRegistry()), &fakeImports{err: importer.ErrLeaseLost}
	counted := m.Imports(inner)
	batch := importer.Batch{Entries: []importer.Entry{{}, {}, {Outcome: importer.EntryFailed}}}
	for range 2 { // the first worker has lost its lease
		_, _ = counted.StoreBatch(t.Context(), importer.Run{}, batch)
		_ = counted.Finish(t.Context(), importer.Run{}, "", nil)
		inner.err = nil
	}
	if got := testutil.ToFloat64(m.importedConversations.WithLabelValues(outcomeSuccess)); got != 2 {
		t.Errorf("%v conversations with outcome success, want 2", got)
	}
	if got := testutil.ToFloat64(m.imports.WithLabelValues(outcomeSuccess)); got != 1 {
		t.Errorf("%v imports with outcome success, want 1", got)
	}
}

type refusedError struct{}

func (refusedError) Error() string { return "status 400" }
func (refusedError) Refused() bool { return true }

func TestRefusedTextsAreCounted(t *testing.T) {
	t.Parallel()
	m, inner := NewMetrics(prometheus.NewRegistry()), &fakeEmbedder{err: refusedError{}}
	e := m.Embedder(inner)
	for _, texts := range [][]string{{"a", "b"}, {"a"}} { // one of two texts, and which
		if _, err := e.Embed(t.Context(), texts); err == nil {
			t.Error("Embed succeeded, want the error of the inner embedder")
		}
	}
	inner.err = errors.New("another error")
	_, _ = e.Embed(t.Context(), []string{"a"})
	if n := testutil.ToFloat64(m.refusedTexts); n != 1 {
		t.Errorf("%v refused texts, want 1", n)
	}
}
