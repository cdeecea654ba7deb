package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

var fuzzAPI = flag.Duration("fuzz-api", 0, "duration of fuzzing with a random seed; 0 runs the short fixed-seed test of `make test`")

// schemathesisConfig disables undocumented parameters. The API ignores unknown
// parameters, which may be from a later version, but schemathesis expects an error.
const schemathesisConfig = "generation.allow-extra-parameters = false\n"

// TestContract fuzzes the API server with schemathesis: valid and invalid requests
// and sequences of requests from /openapi.json with all accepted forms, and all checks.
func TestContract(t *testing.T) {
	packages := installSchemathesis(t)
	applyTenant(t, "contract", "  quota: {memories: 10000000, conversations: 10000000, storage: 100Gi, requestsPerMinute: 1000000}\n")
	report := filepath.Join(t.TempDir(), "report.json")
	document := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(document, accepted(t, readOpenAPI(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{filepath.Join(packages, "bin", "st"), "run", document, "--url", platform.env["MNEMO_URL"],
		"--header", "Authorization: Bearer " + secret(t, "contract", "alice", "token"),
		"--checks", "all", "--continue-on-failure", "--no-color", "--report", "json", "--report-json-path", report}
	limit := 8 * time.Minute
	if *fuzzAPI > 0 {
		args = append(args, "--max-time", strconv.Itoa(int(fuzzAPI.Seconds())), "--max-examples", "1000")
		limit += *fuzzAPI
	} else {
		args = append(args, "--seed", "1", "--max-examples", "10")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
	cmd.Dir = t.TempDir() // for the files of schemathesis
	if err := os.WriteFile(filepath.Join(cmd.Dir, "schemathesis.toml"), []byte(schemathesisConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("schemathesis: %v\n%.30000s", err, out)
	}
	var got struct {
		Operations struct{ Total, Tested int }
		TestCases  struct {
			Generated      int
			UniqueFailures int `json:"unique_failures"`
		} `json:"test_cases"`
	}
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests to %d operations", got.TestCases.Generated, got.Operations.Tested)
	if got.Operations.Total == 0 || got.Operations.Tested < got.Operations.Total {
		t.Errorf("tested %d of %d operations, want all", got.Operations.Tested, got.Operations.Total)
	}
	if got.TestCases.Generated < 1000 {
		t.Errorf("%d requests, want at least 1000", got.TestCases.Generated)
	}
	if got.TestCases.UniqueFailures > 0 {
		t.Errorf("%d failures:\n%.30000s", got.TestCases.UniqueFailures, out)
	}
}

func readOpenAPI(t *testing.T) []byte {
	t.Helper()
	response, err := http.Get(platform.env["MNEMO_URL"] + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	document, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func installSchemathesis(t *testing.T) string {
	t.Helper()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := devenv.Schemathesis(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
