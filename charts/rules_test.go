package charts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// TestAlerts runs the promtool tests, and checks that each alert has a firing test,
// a silent test and a runbook.
func TestAlerts(t *testing.T) {
	t.Parallel()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	prometheus, err := devenv.FindPrometheus(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	content := map[string]string{"rules.yaml": "mnemo/files/rules.yaml", "rules_test.yaml": "testdata/rules_test.yaml"}
	for name, from := range content {
		raw, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		content[name] = string(raw)
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), prometheus.Promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}

	pages, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered := render(t, "-f", "testdata/values/everything.yaml", "-s", "templates/rules.yaml")
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(content["rules.yaml"], -1)
	if len(alerts) == 0 || len(pages) != len(alerts) {
		t.Errorf("%d alerts and %d runbooks, want one runbook per alert", len(alerts), len(pages))
	}
	for _, m := range alerts {
		alert := m[1]
		if _, err := os.Stat("../docs/runbooks/" + alert + ".md"); err != nil {
			t.Errorf("%s has no runbook: %v", alert, err)
		}
		if !strings.Contains(rendered, "/docs/runbooks/"+alert+".md") {
			t.Errorf("%s is rendered without runbook_url", alert)
		}
		for name, fires := range map[string]bool{alert + " fires": true, alert + " is silent": false} {
			_, rest, found := strings.Cut(content["rules_test.yaml"], "name: "+name+"\n")
			one, _, _ := strings.Cut(rest, "  - name: ")
			if !found || strings.Contains(one, "exp_alerts") != fires {
				t.Errorf("missing test: %s", name)
			}
		}
	}
}
