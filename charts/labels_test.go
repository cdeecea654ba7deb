package charts_test

import (
	"strings"
	"testing"
)

// labelValues, annotationValues and nodeSelectorValues are the values that hold such maps.
var (
	labelValues = []string{
		"commonLabels", "api.podLabels", "operator.podLabels", "metrics.serviceMonitor.labels", "metrics.rules.labels", "metrics.dashboards.labels",
	}
	annotationValues = []string{
		"api.podAnnotations", "operator.podAnnotations", "api.serviceAccount.annotations", "operator.serviceAccount.annotations",
		"service.annotations", "ingress.annotations", "gateway.annotations", "metrics.dashboards.annotations",
	}
	nodeSelectorValues = []string{
		"api.nodeSelector", "operator.nodeSelector", "migrate.nodeSelector", "backup.nodeSelector", "erasureLedger.nodeSelector",
		"hooks.nodeSelector", "demoPods.nodeSelector", "postgres.cnpg.nodeSelector", "milvus.operator.nodeSelector",
	}
)

// TestMapsOfTextRefuseOtherTypes: Kubernetes refuses booleans and numbers in labels, annotations and node selectors, with
// an error that does not name the value of the chart.
func TestMapsOfTextRefuseOtherTypes(t *testing.T) {
	t.Parallel()
	base := readValues(t, "testdata/values/everything.yaml")
	var paths []string
	var values []map[string]any
	for _, path := range append(append(append([]string{}, labelValues...), annotationValues...), nodeSelectorValues...) {
		for _, invalid := range []any{true, 1, 1.5, []any{}, map[string]any{}} {
			paths = append(paths, path)
			values = append(values, with(base, map[string]any{"x": invalid}, strings.Split(path, ".")...))
		}
	}
	for i, r := range renderAll(t, "default", values) {
		want := "at '/" + strings.ReplaceAll(paths[i], ".", "/") + "/x': got "
		if !strings.Contains(r.Error, want) || !strings.Contains(r.Error, "want string") {
			t.Errorf("%s: error %q, want %q and the expected type", paths[i], r.Error, want)
		}
	}
}

// TestLabelsAreUnique: the API server, kustomize and other tools refuse duplicate keys, or use the last one.
func TestLabelsAreUnique(t *testing.T) {
	t.Parallel()
	values := readValues(t, "testdata/values/everything.yaml")
	for _, path := range append(append([]string{}, labelValues...), annotationValues...) {
		values = with(values, map[string]any{"team": "of " + path}, strings.Split(path, ".")...)
	}
	for _, path := range labelValues {
		values = with(values, map[string]any{"team": strings.ReplaceAll(path, ".", "-")}, strings.Split(path, ".")...)
	}
	values = with(values, map[string]any{"kubectl.kubernetes.io/default-container": "other"}, "api", "podAnnotations")
	r := renderAll(t, "default", []map[string]any{values})[0]
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	objects := parse(t, r.Manifests) // fails for duplicate keys
	for pod, template := range podSpecs(objects) {
		want := map[string]string{"Deployment/memory-api": "api-podLabels", "Deployment/memory-operator-a": "operator-podLabels"}[pod]
		if want == "" {
			want = "commonLabels"
		}
		if got := template.at("metadata", "labels", "team"); got != want {
			t.Errorf("%s: label team is %v, want %s", pod, got, want)
		}
	}
}

// TestOwnLabelsCannotBeSet: they select the pods of Services and policies, so another value would disconnect them.
func TestOwnLabelsCannotBeSet(t *testing.T) {
	t.Parallel()
	base := readValues(t, "testdata/values/everything.yaml")
	var paths, keys []string
	var values []map[string]any
	add := func(path, key string) {
		paths, keys = append(paths, path), append(keys, key)
		values = append(values, with(base, map[string]any{key: "x"}, strings.Split(path, ".")...))
	}
	for _, path := range labelValues {
		for _, key := range []string{
			"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/version",
			"app.kubernetes.io/managed-by", "app.kubernetes.io/part-of", "helm.sh/chart", "mnemo.dev/shard",
		} {
			add(path, key)
		}
	}
	for _, path := range []string{"api.podAnnotations", "operator.podAnnotations"} {
		add(path, "checksum/secrets")
		add(path, "mnemo.dev/oidc")
	}
	for i, r := range renderAll(t, "default", values) {
		if want := paths[i] + " must not contain " + keys[i]; !strings.Contains(r.Error, want) {
			t.Errorf("%s=%s: error %q, want %q", paths[i], keys[i], r.Error, want)
		}
	}
}
