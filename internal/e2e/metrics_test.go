package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/hack/parts"
)

var httpClient = &http.Client{Timeout: time.Minute}

// prometheus is a real one that scrapes the platform and evaluates the chart's rules.
type prometheus struct{ url string }

func startPrometheus(t *testing.T) prometheus {
	t.Helper()
	cache, err := parts.OpenCache(parts.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := parts.FindPrometheus(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../charts/mnemo/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: api
    static_configs: [{targets: ["%s"]}]
  - job_name: operator
    static_configs: [{targets: ["%s"]}]
`, rules, hostOf(t, "MNEMO_METRICS_URL"), hostOf(t, "MNEMO_OPERATOR_METRICS_URL"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := prometheus{url: "http://127.0.0.1:" + strconv.Itoa(port)}
	running, err := parts.StartProgram(t.Context(), parts.Program{
		Name: "prometheus", Dir: dir, Path: programs.Server, Limit: time.Minute,
		Args: []string{
			"--config.file=" + filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=127.0.0.1:" + strconv.Itoa(port),
		},
		Ready: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/-/ready", nil)
			if err != nil {
				return err
			}
			res, err := httpClient.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("it answers %s", res.Status)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatalf("start Prometheus: %v", err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
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

// get asks Prometheus and decodes the data it answers into out.
func (p prometheus) get(t *testing.T, path string, out any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := struct {
		Error string
		Data  any
	}{Data: out}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Error != "" {
		t.Fatalf("Prometheus %s: %s: %v", path, raw, err)
	}
}

// values returns the numbers a query gives now; NaN is none.
func (p prometheus) values(t *testing.T, query string) []float64 {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get(t, "/api/v1/query?query="+url.QueryEscape(query), &data)
	var all []float64
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	return all
}

// state returns an alert's: inactive, pending or firing.
func (p prometheus) state(t *testing.T, alert string) string {
	t.Helper()
	for _, r := range p.rules(t) {
		if r.Name == alert {
			return r.State
		}
	}
	t.Fatalf("there is no alert %s", alert)
	return ""
}

type rule struct{ Name, State, Health, LastError string }

func (p prometheus) rules(t *testing.T) []rule {
	t.Helper()
	var data struct{ Groups []struct{ Rules []rule } }
	p.get(t, "/api/v1/rules", &data)
	var all []rule
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// panelQuery is what a panel of a dashboard asks.
type panelQuery struct{ board, panel, query string }

// panelQueries returns all of them, with Grafana's variables filled in.
func panelQueries(t *testing.T, tenant string) []panelQuery {
	t.Helper()
	files, err := filepath.Glob("../../charts/mnemo/files/dashboards/*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("dashboards %v, %v: want two", files, err)
	}
	fill := strings.NewReplacer("$__rate_interval", "30s", "$tenant", tenant)
	var all []panelQuery
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Title  string
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(raw, &board); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, p := range board.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %q asks nothing", board.Title, p.Title)
			}
			for _, target := range p.Targets {
				all = append(all, panelQuery{board.Title, p.Title, fill.Replace(target.Expr)})
			}
		}
	}
	return all
}

// use does a little of everything once.
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

// metricName finds what a rule asks of Mnemo.
var metricName = regexp.MustCompile(`\bmnemo_[a-z_]+`)

// TestDashboardsAndAlerts: on a real run, scraped by a real Prometheus, no panel
// of a dashboard is without data and every rule can be evaluated; a Milvus that
// is stopped is seen.
func TestDashboardsAndAlerts(t *testing.T) {
	p := startPrometheus(t)
	alice := filled(t)
	queries := panelQueries(t, "default/filled")
	seen := map[panelQuery][]float64{}
	eventually(t, 3*time.Minute, func() string {
		alice.use(t)
		// The operator has something to do, too.
		kubectl(t, "", "annotate", "tenant/filled", "--overwrite", "touched="+strconv.FormatInt(time.Now().UnixNano(), 10))
		kubectl(t, "", "patch", "tenant/filled", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"displayName":"%d"}}`, time.Now().UnixNano()))
		var empty []string
		for _, q := range queries {
			if len(seen[q]) == 0 {
				seen[q] = p.values(t, q.query)
			}
			if len(seen[q]) == 0 {
				empty = append(empty, q.board+" / "+q.panel+": "+q.query)
			}
		}
		if len(empty) > 0 {
			return "panels without data:\n" + strings.Join(empty, "\n")
		}
		return ""
	})
	for _, q := range queries {
		t.Logf("| %s | %s | `%s` | %.4g |", q.board, q.panel, q.query, seen[q][0])
	}

	var names []string
	p.get(t, "/api/v1/label/__name__/values", &names)
	rules, err := os.ReadFile("../../charts/mnemo/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range metricName.FindAllString(string(rules), -1) {
		// Without TLS there is no certificate; the rule's test shows that one.
		if !slices.Contains(names, name) && name != "mnemo_certificate_expiry_timestamp_seconds" {
			t.Errorf("a rule asks for %s, which nobody tells", name)
		}
	}
	for _, r := range p.rules(t) {
		if r.Health != "ok" || r.State == "firing" {
			t.Errorf("rule %s: health %s (%s), %s; want it evaluated and not firing", r.Name, r.Health, r.LastError, r.State)
		}
	}

	signalMilvus(t, syscall.SIGSTOP)
	resumed := false
	defer func() {
		if !resumed {
			signalMilvus(t, syscall.SIGCONT)
		}
	}()
	eventually(t, 2*time.Minute, func() string { return differs("MnemoMilvusAway", p.state(t, "MnemoMilvusAway"), "pending") })
	signalMilvus(t, syscall.SIGCONT)
	resumed = true
	eventually(t, 2*time.Minute, func() string { return differs("MnemoMilvusAway", p.state(t, "MnemoMilvusAway"), "inactive") })
}

func differs(what, got, want string) string {
	if got == want {
		return ""
	}
	return what + " is " + got + ", want " + want
}
