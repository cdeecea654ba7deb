package e2e_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/prometheustest"
)

// startPrometheus runs a Prometheus that scrapes targets, host:port by job, and
// evaluates the chart's rules.
func startPrometheus(t *testing.T, targets map[string]string) *prometheustest.Server {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../charts/mnemo/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n", rules)
	for job, address := range targets {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%q], labels: {namespace: mnemo, release: mnemo}}]}\n", job, address)
	}
	p, err := prometheustest.Start(t.Context(), cache, t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop Prometheus: %v", err)
		}
	})
	return p
}

func hostOf(t *testing.T, name string) string {
	t.Helper()
	u, err := url.Parse(platform.env[name])
	if err != nil || u.Host == "" {
		t.Fatalf("%s is %q, want a URL: %v", name, platform.env[name], err)
	}
	return u.Host
}

// dashboards returns the chart's dashboards.
func dashboards(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../charts/mnemo/files/dashboards/*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("dashboards %v, %v: want two", files, err)
	}
	var all []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(raw))
	}
	return all
}

// use sends one request of each kind.
func (u user) use(t *testing.T) {
	t.Helper()
	u.remember(t, "2026-05-03 The observatory opens at nine in the evening.")
	u.recall(t, "when can I see the stars")
	if _, err := u.ListMemories(t.Context(), &client.ListMemoriesParams{}); err != nil {
		t.Fatal(err)
	}
	u.ingest(t, "stars", "Stars", time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC), "Which planet has rings?", "Saturn has the brightest.")
	u.passages(t, "planets with rings")
	if _, err := u.Recall(t.Context(), client.RecallRequest{Query: new("which planet has rings")}); err != nil {
		t.Fatal(err)
	}
	_, err := u.GetMemory(t.Context(), "no-such-memory")
	wantStatus(t, "a memory that is not there", err, http.StatusNotFound)
}

// metricName matches the names of Mnemo's metrics in a rule.
var metricName = regexp.MustCompile(`\bmnemo_[a-z_]+`)

// withoutValue are metrics that the platform of these tests does not have: without TLS there is no certificate (the test on a
// real node has it), and without cells none is ready or not (the tests of the operator have some).
var withoutValue = []string{"mnemo_certificate_expiry_timestamp_seconds", "mnemo_cell_ready"}

// TestDashboardsAndAlerts scrapes a running platform with a real Prometheus: every
// panel has data, every rule can be evaluated, and the alert for Milvus fires while
// Milvus is suspended.
func TestDashboardsAndAlerts(t *testing.T) {
	p := startPrometheus(t, map[string]string{
		"api": hostOf(t, "MNEMO_METRICS_URL"), "operator": hostOf(t, "MNEMO_OPERATOR_METRICS_URL"),
	})
	alice := filled(t)
	id := kubectl(t, "", "get", "tenant/filled", "-o", "jsonpath={.status.id}")
	panels, seen := prometheustest.Panels(t, "mnemo", id, dashboards(t)...), prometheustest.Seen{}
	scraped := time.NewTicker(time.Second) // as often as Prometheus scrapes
	defer scraped.Stop()
	eventually(t, 3*time.Minute, func() string {
		<-scraped.C
		alice.use(t)
		// Work for the operator.
		kubectl(t, "", "annotate", "tenant/filled", "--overwrite", "touched="+strconv.FormatInt(time.Now().UnixNano(), 10))
		kubectl(t, "", "patch", "tenant/filled", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, time.Now().UnixNano()))
		return cmp.Or(seen.Record(t, p, panels), missingMetric(t, p))
	})
	t.Logf("\n%s", seen.Table(panels))

	alerts := p.Alerts(t)
	for _, a := range alerts {
		if a.Health != "ok" || a.State == "firing" {
			t.Errorf("%s: health %s (%s), %s; want it evaluated and not firing", a.Name, a.Health, a.LastError, a.State)
		}
	}
	if len(alerts) == 0 {
		t.Error("there are no alerts")
	}

	resume := suspendMilvus(t)
	eventually(t, 2*time.Minute, fires(t, p, "MnemoMilvusUnavailable", true))
	resume()
	eventually(t, 2*time.Minute, fires(t, p, "MnemoMilvusUnavailable", false))
}

// missingMetric describes a metric that an alert uses and that does not exist; "" for none. Metrics
// of jobs exist once a job was unfinished during a scrape.
func missingMetric(t *testing.T, p *prometheustest.Server) string {
	t.Helper()
	names := p.Names(t)
	for _, a := range p.Alerts(t) {
		for _, name := range metricName.FindAllString(a.Query, -1) {
			if !slices.Contains(names, name) && !slices.Contains(withoutValue, name) {
				return fmt.Sprintf("%s uses the metric %s, which does not exist", a.Name, name)
			}
		}
	}
	return ""
}

// fires returns a check that the alert's expression returns a result, or none if want is
// false.
func fires(t *testing.T, p *prometheustest.Server, alert string, want bool) func() string {
	return func() string {
		t.Helper()
		if _, fires := p.Evaluate(t, alert); fires != want {
			return fmt.Sprintf("%s fires: %t, want %t", alert, fires, want)
		}
		return ""
	}
}

// TestEmbedderUnavailable checks that an API server with an unreachable embedder
// stores memories, and that the alert fires. It has stores of its own, because the
// vectors in those of the platform are of another model.
func TestEmbedderUnavailable(t *testing.T) {
	t.Parallel()
	metrics, unused, milvus := testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.Milvus(t)
	database := postgrestest.Create(t)
	token := postgrestest.ApplyTenant(t, database)
	url := startReplica(t, "DATABASE_URL="+database.AppURL,
		"MILVUS_ADDRESS="+milvus.Addr, "MILVUS_USERNAME="+milvus.User, "MILVUS_PASSWORD="+milvus.Password,
		"MNEMO_METRICS_LISTEN="+metrics, "MNEMO_EMBEDDER=openai", "MNEMO_EMBEDDINGS_URL=http://"+unused+"/v1",
		"MNEMO_EMBEDDINGS_MODEL=e5-small-v2-int8", fmt.Sprintf("MNEMO_EMBEDDINGS_DIMENSIONS=%d", dimensions))
	p := startPrometheus(t, map[string]string{"api": metrics})
	alice := connectTo(t, url, token)
	alice.remember(t, "2026-05-07 The kiln is at 1,240 degrees.")
	eventually(t, time.Minute, fires(t, p, "MnemoEmbedderUnavailable", true))
	found, degraded := alice.recall(t, "kiln degrees")
	if len(found) != 1 {
		t.Errorf("keyword search found %d memories, want 1", len(found))
	}
	if !degraded {
		t.Error("the response is not degraded")
	}
}
