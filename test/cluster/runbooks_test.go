package cluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	runbookCode  = regexp.MustCompile("`([^`]+)`")
	runbookQuery = regexp.MustCompile(`\b(mnemo|workqueue|controller_runtime)_[a-z_]+(\{|\[|\))`)
	// readOnly matches the commands that change nothing and need no argument from an alert.
	readOnly = regexp.MustCompile(`^kubectl (-n mnemo )?(get|logs|describe|auth can-i|exec [^ ]+ -- /mnemo index repair --dry-run) `)
	argument = regexp.MustCompile(`\b(NAME|NAMESPACE|POD|KIND|ID)\b`)
)

// runbooksWork runs the commands and queries of the runbooks on the installation.
func runbooksWork(t *testing.T, m *monitor) {
	files, err := filepath.Glob(filepath.Join(cluster.root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands, queries, statements int
	db := database(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range runbookCode.FindAllStringSubmatch(string(text), -1) {
			code := found[1]
			switch {
			case argument.MatchString(code), strings.Contains(code, "--previous"), // no container has restarted
				strings.HasSuffix(code, "get cluster"),   // no CloudNativePG
				strings.HasSuffix(code, "get cells"),     // no cells
				strings.Contains(code, "mnemo-erasures"): // no erasure ledger, which needs a volume
			case readOnly.MatchString(code):
				commands++
				runCommand(t, filepath.Base(file), code)
			case strings.HasPrefix(code, "select "):
				statements++
				execute(t, db, code)
			case runbookQuery.MatchString(code):
				queries++
				m.Query(t, strings.ReplaceAll(code, `namespace="mnemo"`, `namespace="`+namespace+`"`))
			}
		}
	}
	for what, n := range map[string]int{"commands": commands, "queries": queries, "statements": statements} {
		if n < 2 {
			t.Errorf("the runbooks contain %d %s, want at least 2", n, what)
		}
	}
	t.Logf("ran %d commands, %d queries and %d SQL statements", commands, queries, statements)
}

// runCommand runs a command in the release's namespace. grep may find nothing.
func runCommand(t *testing.T, runbook, command string) {
	t.Helper()
	command = strings.ReplaceAll(command, "-n mnemo ", "-n "+namespace+" ")
	command = strings.ReplaceAll(command, "serviceaccount:mnemo:", "serviceaccount:"+namespace+":")
	command = strings.Replace(command, "kubectl", cluster.env["KUBECTL"], 1)
	if kubectlPart, _, piped := strings.Cut(command, " | "); piped {
		command = kubectlPart + " > /dev/null" // and grep, which fails when it finds nothing
	}
	if _, err := try(t.Context(), "", "sh", "-c", command); err != nil {
		t.Errorf("%s: %v", runbook, err)
	}
}

// wantMemoryLimits checks GOMEMLIMIT: 80% of the chart's limit of 1 GiB for the API server,
// and 90% of 512 MiB for the operator.
func wantMemoryLimits(t *testing.T, m *monitor) {
	for job, want := range map[string]float64{"api": 858993459, "operator": 483183820} {
		found := m.Query(t, `go_gc_gomemlimit_bytes{job="`+job+`"}`)
		if len(found) == 0 {
			t.Errorf("%s exports no go_gc_gomemlimit_bytes", job)
		}
		for _, s := range found {
			if s.Value != want {
				t.Errorf("GOMEMLIMIT of %s is %.0f, want %.0f", job, s.Value, want)
			}
		}
	}
}
