package charts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// changes are values, in YAML, for keys whose type alone does not tell another
// valid value. An empty one skips the key, which requires others.
var changes = map[string]string{
	"backup.restore":                 "",
	"enabled":                        "",
	"embeddings.next.mode":           "",
	"global.imagePullSecrets":        "[mirror]",
	"commonLabels":                   "{team: a}",
	"image.pullSecrets":              "[{name: registry}]",
	"milvus.mode":                    "",
	"chat.url":                       "",
	"backup.enabled":                 "",
	"api.serviceAccount":             "{create: false, name: other}",
	"operator.serviceAccount.create": "",
	"operator.shard":                 "",
	"operator.maxQuota.storage":      "2Ti",
	"migrate.nodeSelector":           "{kubernetes.io/os: linux}",
	"migrate.tolerations":            "[{key: dedicated, operator: Exists}]",
	"migrate.extraEnv":               "[{name: HTTPS_PROXY, value: 'http://proxy:3128'}]",
	"migrate.resources.requests":     "{cpu: 51m}",
	"migrate.resources.limits":       "{memory: 257Mi}",
	"ingress.enabled":                "",
	"gateway.enabled":                "",
}

// TestMigrationJobNameChangesWithItsSpec changes every value in turn. A Job is
// immutable, so a tool that applies rendered manifests fails if a change keeps the
// Job's name.
func TestMigrationJobNameChangesWithItsSpec(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	render := func(chart string, set ...string) string {
		args := append([]string{"-n", ns, "-f", "testdata/values/external.yaml", "-s", "templates/migrate-job.yaml"}, set...)
		return renderChart(t, chart, args...)
	}
	original := render(chart)
	jobs, changed := []string{original}, []string{}
	for _, value := range changedValues(t) {
		if job := render(chart, "--set-json", value); job != original {
			jobs = append(jobs, job)
			key, _, _ := strings.Cut(value, "=")
			changed = append(changed, key)
		}
	}
	for _, want := range []string{"log.level", "commonLabels", "image.tag", "image.pullSecrets", "migrate.extraEnv", "postgres.sslMode"} {
		if !slices.Contains(changed, want) {
			t.Errorf("values that change the Job: %v, want also %s", changed, want)
		}
	}
	jobs = append(jobs, render(withVersion(t, "9.9.9")), render(chart, "-f", "testdata/values/everything.yaml"))
	// In one command, so that each is applied after the others.
	kubectl(t, strings.Join(jobs, "\n"), "-n", ns, "apply", "-f", "-")
	expectJobs(t, ns, jobs)

	kubectl(t, original, "-n", ns, "apply", "-f", "-") // unchanged values do not repeat the migration
	expectJobs(t, ns, jobs)
}

// expectJobs checks that the namespace contains one Job for each different spec.
func expectJobs(t *testing.T, ns string, jobs []string) {
	t.Helper()
	specs := map[string]bool{}
	for _, job := range jobs {
		spec, err := json.Marshal(parse(t, job)[0]["spec"])
		if err != nil {
			t.Fatal(err)
		}
		specs[string(spec)] = true
	}
	out, err := tryKubectl(t, "", "-n", ns, "get", "jobs", "-o", "name")
	if err != nil {
		t.Fatal(err, out)
	}
	if got := len(strings.Fields(out)); got != len(specs) {
		t.Errorf("%d Jobs for %d different specs", got, len(specs))
	}
}

// changedValues returns an argument of --set-json with another valid value for
// each value of the chart.
func changedValues(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("mnemo/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	schema := readSchema(t)
	var all []string
	eachValue("", values, func(path string, value any) {
		if change := changedValue(t, schema, path, value); change != "" {
			all = append(all, path+"="+change)
		}
	})
	return all
}

// eachValue calls f for each value that is not a map with keys.
func eachValue(path string, value any, f func(path string, value any)) {
	m, ok := value.(map[string]any)
	if _, found := changes[path]; !ok || len(m) == 0 || found {
		f(path, value)
		return
	}
	for key, v := range m {
		eachValue(strings.TrimPrefix(path+"."+key, "."), v, f)
	}
}

func changedValue(t *testing.T, schema object, path string, value any) string {
	t.Helper()
	if change, ok := changes[path]; ok {
		var v any
		if err := yaml.Unmarshal([]byte(change), &v); err != nil || v == nil {
			return ""
		}
		return asJSON(t, v)
	}
	switch v := value.(type) {
	case bool:
		return fmt.Sprint(!v)
	case int:
		return fmt.Sprint(v + 1)
	case string:
		return asJSON(t, changedString(t, schema, path, v))
	}
	return "" // an empty list or map of another component
}

// others are values, at least one of which each pattern of the schema accepts.
var others = []string{
	"other", "/other", "https://other.example.test", "other:19530", "31s", "3Gi", "0.2", "sha256:" + strings.Repeat("0a", 32), "@daily", "0 0 3 * * *",
}

// changedString returns another value of the key's enumeration, or one that
// matches its pattern.
func changedString(t *testing.T, schema object, path, value string) string {
	t.Helper()
	node := schemaOf(schema, path)
	allowed := others
	if enum, ok := node["enum"].([]any); ok {
		allowed = nil
		for _, v := range enum {
			allowed = append(allowed, fmt.Sprint(v))
		}
	}
	pattern, _ := node["pattern"].(string)
	for _, v := range allowed {
		if v != value && regexp.MustCompile(pattern).MatchString(v) {
			return v
		}
	}
	t.Fatalf("no other value of %s is known: add one to changes or others", path)
	return ""
}

// schemaOf returns the schema of a value.
func schemaOf(root object, path string) object {
	node := root
	for key := range strings.SplitSeq(path, ".") {
		child, ok := node.at("properties", key).(map[string]any)
		patterns, _ := node["patternProperties"].(map[string]any)
		for _, pattern := range patterns { // at most one
			if !ok {
				child, _ = pattern.(map[string]any)
			}
		}
		if ref, ok := child["$ref"].(string); ok {
			child, _ = root.at("definitions", strings.TrimPrefix(ref, "#/definitions/")).(map[string]any)
		}
		node = child
	}
	return node
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func readSchema(t *testing.T) object {
	t.Helper()
	raw, err := os.ReadFile("mnemo/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// withVersion returns a copy of the chart with another version.
func withVersion(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mnemo")
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "Chart.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := regexp.MustCompile(`(?m)^version: .*$`).ReplaceAll(raw, []byte("version: "+version))
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRenderedManifestsApplyAfterChanges applies the whole chart without Helm, as
// Argo CD and kubectl do, before and after each change.
func TestRenderedManifestsApplyAfterChanges(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	for name, change := range map[string]struct {
		chart string
		args  []string
	}{
		"log level":     {chart, []string{"--set", "log.level=DEBUG"}},
		"common labels": {chart, []string{"--set", "commonLabels.team=a"}},
		"chart version": {withVersion(t, "9.9.9"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installing.RLock()
			t.Cleanup(installing.RUnlock)
			ns := newNamespace(t)
			args := []string{
				"--no-hooks", "-n", ns, "-f", "testdata/values/external.yaml", "--set", "crds.install=false,operator.watchNamespaces={" + ns + "}",
			}
			before, after := renderChart(t, chart, args...), renderChart(t, change.chart, append(args, change.args...)...)
			t.Cleanup(func() { deleteObjects(t, ns, after) })
			kubectl(t, before, "-n", ns, "apply", "-f", "-")
			kubectl(t, after, "-n", ns, "apply", "-f", "-")
		})
	}
}

// deleteObjects deletes applied objects after a test, including cluster-scoped
// ones.
func deleteObjects(t *testing.T, ns, manifests string) {
	t.Helper()
	cmd := exec.Command(testkit.Kubectl(t), "--kubeconfig", testkit.KubeConfigFile(t), "-n", ns, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("delete objects: %v\n%s", err, out)
	}
}
