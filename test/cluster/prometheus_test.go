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

	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/test/prometheustest"
)

// watchers is the namespace of Prometheus' account.
const watchers = "monitoring"

// watch is a Prometheus beside the cluster that finds what to scrape by the
// ServiceMonitor in it, evaluates the PrometheusRule, and is asked what the
// dashboards ask.
type watch struct {
	*prometheustest.Server
	panels []prometheustest.Panel
	seen   prometheustest.Seen
	fired  []prometheustest.Fired
}

// prepareWatch brings the programs of a watch, beside what takes longer.
func prepareWatch(ctx context.Context) error {
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		return err
	}
	_, err = devenv.Discovery(ctx, cache)
	_, errServer := devenv.FindPrometheus(ctx, cache)
	return errors.Join(err, errServer)
}

// startWatch begins to watch the release; keep is given what ends it.
func startWatch(t *testing.T, keep func(func())) *watch {
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
		t.Fatalf("%d PrometheusRules, want the chart's", len(rules.Items))
	}
	writeYAML(t, filepath.Join(dir, "rules.yml"), rules.Items[0].Spec)
	jobs := scrapeJobs(t)
	// What finds them and what scrapes them are two programs: Debian's Prometheus is built without discovery in Kubernetes.
	var finds, scrapes []map[string]any
	for _, j := range jobs {
		finds = append(finds, map[string]any{"job_name": j["job_name"], "kubernetes_sd_configs": j["kubernetes_sd_configs"]})
		delete(j, "kubernetes_sd_configs")
		j["file_sd_configs"] = []any{map[string]any{"files": []string{fmt.Sprint(j["job_name"], ".json")}}}
		scrapes = append(scrapes, j)
	}
	writeYAML(t, filepath.Join(dir, "discover.yml"), finds)
	discover, err := devenv.Discovery(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	finder, err := devenv.StartProgram(t.Context(), devenv.Program{
		Name: "discover", Dir: dir, Path: discover, Args: []string{filepath.Join(dir, "discover.yml"), dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	keep(func() { _ = finder.Stop() })
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
	keep(func() { _ = server.Stop() })
	return &watch{Server: server, panels: prometheustest.Panels(t, "default/load", dashboards(t)...), seen: prometheustest.Seen{}}
}

// fetch decodes the release's objects of a kind.
func fetch(t *testing.T, out any, kind string, args ...string) {
	t.Helper()
	raw := kubectl(t, "", append([]string{"get", kind, "--namespace", namespace, "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(raw), out); err != nil {
		t.Fatalf("read %s: %v", kind, err)
	}
}

// dashboards are those that Grafana's sidecar would find.
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
		t.Fatalf("%d dashboards, want two", len(all))
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

// look looks at the dashboards, as someone does now and then.
func (w *watch) look(t *testing.T) { w.seen.Look(t, w.Server, w.panels) }

// wantTargets waits until so many API servers and one operator are scraped, and
// nothing else.
func (w *watch) wantTargets(t *testing.T, apis int) {
	t.Helper()
	eventually(t, time.Minute, func() string {
		count := map[string]int{}
		for _, target := range w.Targets(t) {
			if target.Health != "up" {
				return fmt.Sprintf("%v is %s: %s", target.Labels, target.Health, target.LastError)
			}
			count[target.Labels["job"]]++
		}
		if len(count) != 2 || count["api"] != apis || count["operator"] != 1 {
			return fmt.Sprintf("targets %v, want %d API servers and one operator", count, apis)
		}
		return ""
	})
}

// window is over how long a rule looks back.
var window = regexp.MustCompile(`\[[0-9]+[mh]\]`)

// wantSilence waits until every alert can be evaluated and none has a reason in
// the last minute: what a busy machine did before is forgotten.
func (w *watch) wantSilence(t *testing.T) {
	t.Helper()
	eventually(t, 2*time.Minute, func() string {
		var loud []string
		alerts := w.Alerts(t)
		for _, a := range alerts {
			found := w.Query(t, window.ReplaceAllString(a.Query, "[1m]"))
			if a.Health != "ok" || len(found) > 0 {
				loud = append(loud, fmt.Sprintf("%s gives %v, health %s %s", a.Name, found, a.Health, a.LastError))
			}
		}
		if len(alerts) == 0 {
			return "there are no alerts"
		}
		return strings.Join(loud, "\n")
	})
}

// wantQuietLife checks that no alert has fired since the watch started.
func (w *watch) wantQuietLife(t *testing.T) {
	t.Helper()
	for _, a := range w.Query(t, `max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))`) {
		t.Errorf("%s fired although the installation was healthy", a.Labels["alertname"])
	}
}

// wantNone waits until an alert's expression gives nothing.
func (w *watch) wantNone(t *testing.T, alert string) {
	t.Helper()
	eventually(t, 90*time.Second, func() string {
		if _, fires := w.Ask(t, alert); fires {
			return alert + " still fires"
		}
		return ""
	})
}

// wantAlert waits until an alert's expression, in which replacements are made
// in pairs, gives something, and notes how that was brought about.
func (w *watch) wantAlert(t *testing.T, how, alert string, replace ...string) {
	t.Helper()
	begin := time.Now()
	eventually(t, 90*time.Second, func() string {
		f, ok := w.Ask(t, alert, replace...)
		if !ok {
			return alert + " does not fire: " + f.Query
		}
		f.How = how
		w.fired = append(w.fired, f)
		return ""
	})
	t.Logf("%s after %s", alert, time.Since(begin).Round(100*time.Millisecond))
}

// elsewhere are the tests of alerts that nothing on the node could make fire.
var elsewhere = map[string]string{
	"MnemoEmbedderUnavailable": "test/e2e TestEmbedderUnavailable: the embedder endpoint of an API server is unreachable",
}

// report writes what was seen into bin/.
func (w *watch) report(t *testing.T) {
	t.Helper()
	var rows []prometheustest.Fired
	for _, a := range w.Alerts(t) {
		i := slices.IndexFunc(w.fired, func(f prometheustest.Fired) bool { return f.Alert == a.Name })
		switch {
		case i >= 0:
			rows = append(rows, w.fired[i])
		case elsewhere[a.Name] != "":
			rows = append(rows, prometheustest.Fired{Alert: a.Name, How: elsewhere[a.Name], Query: a.Query})
		default:
			t.Errorf("%s was not made to fire", a.Name)
		}
	}
	bin := filepath.Join(cluster.root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]string{"alerts.md": prometheustest.AlertTable(rows), "dashboards.md": w.seen.Table(w.panels)} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
