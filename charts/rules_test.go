package charts_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

const rulesFile = "mnemo/files/rules.yaml"

// ruleFile is the content of a file of rules.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string   `yaml:"name"`
	Rules []object `yaml:"rules"`
}

// ruleTests is the content of testdata/rules_test.yaml.
type ruleTests struct {
	Files    []string   `yaml:"rule_files"`
	Interval string     `yaml:"evaluation_interval"`
	Tests    []ruleTest `yaml:"tests"`
}

type ruleTest struct {
	Name     string      `yaml:"name"`
	Interval string      `yaml:"interval"`
	Series   []series    `yaml:"input_series"`
	Alerts   []alertTest `yaml:"alert_rule_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	At   string           `yaml:"eval_time"`
	Name string           `yaml:"alertname"`
	Want []map[string]any `yaml:"exp_alerts,omitempty"`
}

// ofOtherRelease returns the series of another release in the same namespace. Those of kube-state-metrics have the
// name of its CronJob instead of its own.
func ofOtherRelease(all []series) []series {
	other := strings.NewReplacer(`release="mnemo"`, `release="other"`, `cronjob="mnemo-backup"`, `cronjob="other-backup"`)
	out := slices.Clone(all)
	for i := range out {
		out[i].Series = other.Replace(out[i].Series)
	}
	return out
}

// TestAlerts runs the promtool tests. Each alert must have a test in which it fires and one
// in which it is silent. Both must have the same result beside another release in the
// opposite state. promtool evaluates all rules of a file in each of its tests, so every alert has its own files.
func TestAlerts(t *testing.T) {
	t.Parallel()
	var rules ruleFile
	readYAML(t, rulesFile, &rules)
	tests := testsByAlert(t)
	dir := t.TempDir()
	args := []string{"test", "rules"}
	for _, rule := range rules.alerts() {
		alert, _ := rule["alert"].(string)
		own := tests[alert]
		delete(tests, alert)
		fires, silent := own.named(alert+" fires", true), own.named(alert+" is silent", false)
		if fires == nil || silent == nil {
			t.Errorf("%s has no test in which it fires, or none in which it is silent", alert)
			continue
		}
		own.Tests = append(own.Tests, besideOtherRelease(*fires, *silent)...)
		own.Files = []string{alert + ".yaml"}
		if rule["for"] == "1h" { // its tests last hours
			own.Interval = "5m"
		}
		writeYAML(t, filepath.Join(dir, alert+".yaml"), rules.reading(alert, own.Tests))
		writeYAML(t, filepath.Join(dir, alert+"_test.yaml"), own)
		args = append(args, alert+"_test.yaml")
	}
	if len(args) == 2 || len(tests) > 0 {
		t.Errorf("%d tested alerts, and tests of %v, which are no alerts", len(args)-2, slices.Sorted(maps.Keys(tests)))
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), readFile(t, rulesFile), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "rules.yaml")
	promtool(t, dir, args...)
}

// testsByAlert returns the tests of each alert.
func testsByAlert(t *testing.T) map[string]ruleTests {
	t.Helper()
	var all ruleTests
	readYAML(t, "testdata/rules_test.yaml", &all)
	byAlert := map[string]ruleTests{}
	for _, test := range all.Tests {
		if len(test.Alerts) != 1 {
			t.Fatalf("test %q has %d expectations, want 1", test.Name, len(test.Alerts))
		}
		alert := test.Alerts[0].Name
		byAlert[alert] = ruleTests{Interval: all.Interval, Tests: append(byAlert[alert].Tests, test)}
	}
	return byAlert
}

// named returns the test with the name, or nil if there is none or it does not expect that the alert fires, or that it
// is silent.
func (r ruleTests) named(name string, fires bool) *ruleTest {
	for _, test := range r.Tests {
		if test.Name == name && (len(test.Alerts[0].Want) > 0) == fires {
			return &test
		}
	}
	return nil
}

// besideOtherRelease returns both tests with the series of the other one as those of another release.
func besideOtherRelease(fires, silent ruleTest) []ruleTest {
	alone := fires.Series
	fires.Name, fires.Series = fires.Name+" beside a silent release", slices.Concat(alone, ofOtherRelease(silent.Series))
	silent.Name, silent.Series = silent.Name+" beside a firing release", slices.Concat(silent.Series, ofOtherRelease(alone))
	return []ruleTest{fires, silent}
}

// alerts returns the rules of alerts.
func (f ruleFile) alerts() (rules []object) {
	for _, group := range f.Groups {
		for _, rule := range group.Rules {
			if rule["alert"] != nil {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// reading returns the rule of the alert and all rules that read a metric of the tests, directly or through recorded
// metrics. The others have no data in these tests.
func (f ruleFile) reading(alert string, tests []ruleTest) ruleFile {
	metrics := map[string]bool{}
	for _, test := range tests {
		for _, s := range test.Series {
			name, _, _ := strings.Cut(s.Series, "{")
			metrics[name] = true
		}
	}
	var kept ruleFile
	for _, group := range f.Groups {
		var rules []object
		for _, rule := range group.Rules {
			expr, _ := rule["expr"].(string)
			if rule["alert"] != alert && !slices.ContainsFunc(metric.FindAllString(expr, -1), func(m string) bool { return metrics[m] }) {
				continue
			}
			rules = append(rules, rule)
			if name, ok := rule["record"].(string); ok {
				metrics[name] = true
			}
		}
		if len(rules) > 0 {
			kept.Groups = append(kept.Groups, ruleGroup{group.Name, rules})
		}
	}
	return kept
}

func readYAML(t *testing.T, name string, v any) {
	t.Helper()
	if err := yaml.Unmarshal(readFile(t, name), v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	prometheus, err := devenv.FindPrometheus(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), prometheus.Promtool, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// metric matches the name of a metric in an expression.
var metric = regexp.MustCompile(`\b(?:mnemo|controller_runtime|workqueue|leader_election|process|go|kube)[_:][a-z0-9_:]+`)

// wantSelectors fails the test if an expression has a selector without the matchers.
func wantSelectors(t *testing.T, where, expr, matchers string) {
	t.Helper()
	found := metric.FindAllStringIndex(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: no metric in %s", where, expr)
	}
	for _, m := range found {
		if name, rest := expr[m[0]:m[1]], expr[m[1]:]; !strings.HasPrefix(rest, "{"+matchers) {
			t.Errorf("%s: %s does not select %s: %s", where, name, matchers, expr)
		}
	}
}

// TestRulesSelectRelease renders the rules of a release: every selector has its namespace
// and name, and the burn rates its objectives.
func TestRulesSelectRelease(t *testing.T) {
	t.Parallel()
	rendered, err := helm(t, "template", "acme", chart, "--kube-version", "1.37.0", "--namespace", "prod", "-f", "testdata/values/everything.yaml",
		"-s", "templates/rules.yaml", "--set-json", `metrics.rules.objectives={"availability":0.995,"latency":0.95}`)
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Record, Alert, Expr string
					Annotations         map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(rendered), &rules); err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			matchers := `namespace="prod",release="acme"`
			if r.Alert == "MnemoBackupOverdue" {
				matchers = `namespace="prod",cronjob="memory-backup"`
				if !strings.Contains(r.Expr, "+ 7200 +") {
					t.Errorf("%s does not contain backup.activeDeadlineSeconds: %s", r.Alert, r.Expr)
				}
			}
			wantSelectors(t, r.Record+r.Alert, r.Expr, matchers)
			switch {
			case r.Alert != "":
				documented[r.Alert] = strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks/"+r.Alert+".md")
			case strings.HasPrefix(r.Record, "mnemo:availability_burn:") && strings.Contains(r.Expr, "/ (1 - 0.995)"):
			case strings.HasPrefix(r.Record, "mnemo:latency_burn:") && strings.Contains(r.Expr, "/ (1 - 0.95)"):
			default:
				t.Errorf("%s is not divided by its objective: %s", r.Record, r.Expr)
			}
		}
	}
	pages, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) != len(documented) {
		t.Errorf("%d alerts and %d runbooks, want one runbook per alert", len(documented), len(pages))
	}
	for _, alert := range slices.Sorted(maps.Keys(documented)) {
		if _, err := os.Stat("../docs/runbooks/" + alert + ".md"); err != nil || !documented[alert] {
			t.Errorf("%s has no runbook, or its rule does not link to it: %v", alert, err)
		}
	}
}

// TestDashboardsSelectRelease checks that every query selects the namespace and release
// of the dashboard's variables.
func TestDashboardsSelectRelease(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("mnemo/files/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	for _, file := range files {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := yaml.Unmarshal(readFile(t, file), &board); err != nil { // JSON is YAML
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				wantSelectors(t, file+" "+p.Title, target.Expr, `namespace="$namespace",release="$release"`)
			}
		}
	}
}
