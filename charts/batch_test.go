package charts_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rendering is the outcome of rendering the chart with some values.
type rendering struct{ Manifests, Error string }

// renderAll renders the chart with each of the values, in one process.
func renderAll(t *testing.T, namespace string, values []map[string]any) []rendering {
	t.Helper()
	path, err := filepath.Abs(chart)
	if err != nil {
		t.Fatal(err)
	}
	var stdin, stdout, stderr bytes.Buffer
	e := json.NewEncoder(&stdin)
	for _, v := range values {
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "-C", "../hack/tools/helm", "run", "./batch", path, namespace, "1.37.0")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as hack/tool.sh, for common build results
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("render the chart: %v\n%s", err, stderr.String())
	}
	results := make([]rendering, 0, len(values))
	for d := json.NewDecoder(&stdout); d.More(); {
		var r rendering
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	if len(results) != len(values) {
		t.Fatalf("%d renderings, want %d", len(results), len(values))
	}
	return results
}

// readValues returns the content of a file of values.
func readValues(t *testing.T, path string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return values
}

// with returns a copy of values in which those at a path of keys are replaced.
func with(values map[string]any, value any, path ...string) map[string]any {
	clone := maps.Clone(values)
	if clone == nil {
		clone = map[string]any{}
	}
	if len(path) > 1 {
		nested, _ := clone[path[0]].(map[string]any)
		value = with(nested, value, path[1:]...)
	}
	clone[path[0]] = value
	return clone
}
