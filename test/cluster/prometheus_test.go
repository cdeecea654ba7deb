package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/test/prometheustest"
)

// monitoringNamespace is the namespace of the service account of Prometheus.
const monitoringNamespace = "monitoring"

// monitor is a Prometheus outside the cluster that discovers its targets through the
// release's ServiceMonitor, evaluates its PrometheusRule, and answers the queries of its
// dashboards.
type monitor struct {
	*prometheustest.Server
	panels []prometheustest.Panel
	seen   prometheustest.Seen
	fired  []prometheustest.Fired
}

// prepareMonitor downloads and builds the programs of a monitor.
func prepareMonitor(ctx context.Context) error {
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return err
	}
	_, err = devenv.Discovery(ctx, cache)
	_, errServer := devenv.FindPrometheus(ctx, cache)
	return errors.Join(err, errServer)
}

// startMonitor starts monitoring the release. It registers its cleanup functions with
// cleanup, because the monitor outlives t.
func startMonitor(t *testing.T, cleanup func(func())) *monitor {
	t.Helper()
	dir := filepath.Join(cluster.top, "prometheus")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct{ Items []struct{ Spec any } }
	fetch(t, &rules, "prometheusrules")
	if len(rules.Items) != 1 {
		t.Fatalf("%d PrometheusRules, want 1", len(rules.Items))
	}
	writeYAML(t, filepath.Join(dir, "rules.yml"), rules.Items[0].Spec)
	jobs := scrapeJobs(t)
	// A separate program discovers the targets, because Debian builds Prometheus without Kubernetes service discovery.
	var discoveries, scrapes []map[string]any
	for _, j := range jobs {
		discoveries = append(discoveries, map[string]any{"job_name": j["job_name"], "kubernetes_sd_configs": j["kubernetes_sd_configs"]})
		delete(j, "kubernetes_sd_configs")
		j["file_sd_configs"] = []any{map[string]any{"files": []string{fmt.Sprint(j["job_name"], ".json")}}}
		scrapes = append(scrapes, j)
	}
	writeYAML(t, filepath.Join(dir, "discover.yml"), discoveries)
	discover, err := devenv.Discovery(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	discoverer, err := devenv.StartProgram(t.Context(), devenv.Program{
		Name: "discover", Dir: dir, Path: discover, Args: []string{filepath.Join(dir, "discover.yml"), dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(func() { _ = discoverer.Stop() })
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"evaluation_interval": "1s"},
		"rule_files": []string{"rules.yml"}, "scrape_configs": scrapes,
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := prometheustest.Start(t.Context(), cache, dir, string(config))
	if err != nil {
		t.Fatal(err)
	}
	cleanup(func() { _ = server.Stop() })
	return &monitor{Server: server, panels: prometheustest.Panels(t, namespace, "default/load", dashboards(t)...), seen: prometheustest.Seen{}}
}

// fetch decodes the release's objects of a kind into out.
func fetch(t *testing.T, out any, kind string, args ...string) {
	t.Helper()
	raw := kubectl(t, "", append([]string{"get", kind, "--namespace", namespace, "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(raw), out); err != nil {
		t.Fatalf("read %s: %v", kind, err)
	}
}

// dashboards returns the dashboards that Grafana's sidecar would find.
func dashboards(t *testing.T) (all []string) {
	t.Helper()
	var maps struct {
		Items []struct{ Data map[string]string }
	}
	fetch(t, &maps, "configmaps", "--selector", "grafana_dashboard=1")
	for _, m := range maps.Items {
		for _, board := range m.Data {
			all = append(all, board)
		}
	}
	if len(all) != 2 {
		t.Fatalf("%d dashboards, want 2", len(all))
	}
	slices.Sort(all)
	return all
}

func writeYAML(t *testing.T, file string, content any) {
	t.Helper()
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// recordPanels records the current values of all dashboard panels.
func (m *monitor) recordPanels(t *testing.T) { m.seen.Record(t, m.Server, m.panels) }

// wantTargets waits until the targets are the given number of API servers and one
// operator.
func (m *monitor) wantTargets(t *testing.T, apis int) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		count := map[string]int{}
		for _, target := range m.Targets(t) {
			if target.Health != "up" {
				return fmt.Sprintf("%v is %s: %s", target.Labels, target.Health, target.LastError)
			}
			count[target.Labels["job"]]++
		}
		return cmp.Diff(map[string]int{"api": apis, "operator": 1}, count)
	})
}

// rangeSelector matches the duration of a range vector.
var rangeSelector = regexp.MustCompile(`\[[0-9]+[mh]\]`)

// wantNoActiveAlerts waits until every alert can be evaluated and none has a result over
// the last minute. The shorter range ignores failed requests during the start. It also
// ignores the results of slow burns, which are recorded over hours, and of alerts on
// latency, which depend on the speed of the machine.
func (m *monitor) wantNoActiveAlerts(t *testing.T) {
	t.Helper()
	eventually(t, 2*time.Minute, func() string {
		var active []string
		alerts := m.Alerts(t)
		for _, a := range alerts {
			found := m.Query(t, rangeSelector.ReplaceAllString(a.Query, "[1m]"))
			ignored := strings.HasPrefix(a.Name, "MnemoLatency") || strings.HasSuffix(a.Name, "SlowBurn")
			if a.Health != "ok" || len(found) > 0 && !ignored {
				active = append(active, fmt.Sprintf("%s: result %v, health %s %s", a.Name, found, a.Health, a.LastError))
			}
		}
		if len(alerts) == 0 {
			return "no alerts are loaded"
		}
		return strings.Join(active, "\n")
	})
}

// wantNoAlertFired checks that no alert has fired since the monitor started. The alerts on
// latency depend on the speed of the machine: charts/testdata tests them.
func (m *monitor) wantNoAlertFired(t *testing.T) {
	t.Helper()
	for _, a := range m.Query(t, `max by (alertname) (max_over_time(ALERTS{alertstate="firing",alertname!~"MnemoLatency.*"}[1h]))`) {
		t.Errorf("%s fired although the installation was healthy", a.Labels["alertname"])
	}
}

// wantResolved waits until an alert's expression has no result.
func (m *monitor) wantResolved(t *testing.T, alert string) {
	t.Helper()
	eventually(t, 90*time.Second, func() string {
		if _, fires := m.Evaluate(t, alert); fires {
			return alert + " still fires"
		}
		return ""
	})
}

// wantAlert waits until an alert's expression has a result, after replacing pairs of old
// and new strings in it, and records how the test triggered it.
func (m *monitor) wantAlert(t *testing.T, how, alert string, replace ...string) {
	t.Helper()
	begin := time.Now()
	eventually(t, 90*time.Second, func() string {
		f, ok := m.Evaluate(t, alert, replace...)
		if !ok {
			return alert + " does not fire: " + f.Query
		}
		f.How = how
		m.fired = append(m.fired, f)
		return ""
	})
	t.Logf("%s after %s", alert, time.Since(begin).Round(100*time.Millisecond))
}

// triggeredElsewhere names the tests of the alerts that cannot be triggered on the node.
var triggeredElsewhere = map[string]string{
	"MnemoBackupOverdue":       "charts TestAlerts: no kube-state-metrics runs on the node",
	"MnemoCellUnavailable":     "controllers TestReadyGaugeShowsAnOutage: the Milvus instance of a cell is unreachable; the installation on the node has no cells",
	"MnemoEmbedderUnavailable": "test/e2e TestEmbedderUnavailable: the embedder endpoint of an API server is unreachable",
	"MnemoLatencyFastBurn":     "charts TestAlerts: on a fast node, too few requests of the last 5 minutes are slow after an outage",
	"MnemoLatencySlowBurn":     "charts TestAlerts: on a fast node, too few requests of the last 5 minutes are slow after an outage",
}

// writeReport writes tables of the triggered alerts and the panels' values into bin/.
func (m *monitor) writeReport(t *testing.T) {
	t.Helper()
	var rows []prometheustest.Fired
	for _, a := range m.Alerts(t) {
		i := slices.IndexFunc(m.fired, func(f prometheustest.Fired) bool { return f.Alert == a.Name })
		switch {
		case i >= 0:
			rows = append(rows, m.fired[i])
		case triggeredElsewhere[a.Name] != "":
			rows = append(rows, prometheustest.Fired{Alert: a.Name, How: triggeredElsewhere[a.Name], Query: a.Query})
		default:
			t.Errorf("no test triggers %s", a.Name)
		}
	}
	bin := filepath.Join(cluster.root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]string{"alerts.md": prometheustest.AlertTable(rows), "dashboards.md": m.seen.Table(m.panels)} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
