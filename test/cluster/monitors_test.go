package cluster_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// defineMonitoring teaches the cluster the custom resources of the Prometheus operator.
func defineMonitoring(t *testing.T) {
	t.Helper()
	files, err := devenv.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		kubectl(t, "", "apply", "--server-side", "--filename", files[kind])
		// kubectl fails on one that has no condition at all yet.
		eventually(t, time.Minute, func() string {
			if _, err := try(t.Context(), "", cluster.env["KUBECTL"], "wait", "--for=condition=Established", "--timeout=60s", "--filename", files[kind]); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// account gives Prometheus one with the rights it is usually given, and returns
// how a Prometheus outside the cluster uses it.
func account(t *testing.T) map[string]any {
	t.Helper()
	kubectl(t, `
apiVersion: v1
kind: Namespace
metadata: {name: `+watchers+`}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: `+watchers+`}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus}
rules:
  - {apiGroups: [""], resources: [services, pods], verbs: [get, list, watch]}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: `+watchers+`}]
`, "apply", "--filename", "-")
	ca, err := base64.StdEncoding.DecodeString(kubectl(t, "", "config", "view", "--raw", "--output", "jsonpath={.clusters[0].cluster.certificate-authority-data}"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(cluster.top, "prometheus", "ca.crt")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"role":          "endpointslice",
		"api_server":    kubectl(t, "", "config", "view", "--output", "jsonpath={.clusters[0].cluster.server}"),
		"authorization": map[string]any{"credentials": kubectl(t, "", "create", "token", "prometheus", "--namespace", watchers, "--duration=2h")},
		"tls_config":    map[string]any{"ca_file": file},
	}
}

// serviceMonitor is all that the chart's says. A field more is an error: it has
// to be made something of here, too.
type serviceMonitor struct {
	JobLabel string `json:"jobLabel"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Endpoints []struct {
		Port     string `json:"port"`
		Interval string `json:"interval"`
	} `json:"endpoints"`
}

// scrapeJobs are what the Prometheus operator makes of the ServiceMonitors that
// are in the cluster: its relabelling, step by step.
func scrapeJobs(t *testing.T) (jobs []map[string]any) {
	t.Helper()
	var monitors struct {
		Items []struct {
			Metadata struct{ Name, Namespace string }
			Spec     json.RawMessage
		}
	}
	fetch(t, &monitors, "servicemonitors")
	discovery := account(t)
	for _, m := range monitors.Items {
		var spec serviceMonitor
		d := json.NewDecoder(bytes.NewReader(m.Spec))
		d.DisallowUnknownFields()
		if err := d.Decode(&spec); err != nil {
			t.Fatalf("the ServiceMonitor: %v", err)
		}
		found := maps.Clone(discovery)
		found["namespaces"] = map[string]any{"names": []string{m.Metadata.Namespace}}
		for i, e := range spec.Endpoints {
			jobs = append(jobs, map[string]any{
				"job_name":              fmt.Sprintf("serviceMonitor-%s-%s-%d", m.Metadata.Namespace, m.Metadata.Name, i),
				"kubernetes_sd_configs": []any{found},
				"scrape_interval":       e.Interval, "scrape_timeout": e.Interval,
				"relabel_configs": relabelling(spec.Selector.MatchLabels, e.Port, spec.JobLabel),
			})
		}
	}
	if len(jobs) == 0 {
		t.Fatal("there is no ServiceMonitor, or it names no endpoint")
	}
	return jobs
}

// relabelling keeps the ports of that name of the Services that have all labels,
// and names what is scraped.
func relabelling(labels map[string]string, port, jobLabel string) []any {
	var steps []any
	keep := func(regex string, sources ...string) {
		steps = append(steps, map[string]any{"action": "keep", "source_labels": sources, "regex": regex})
	}
	set := func(target, source, regex string) {
		steps = append(steps, map[string]any{"source_labels": []string{source}, "target_label": target, "regex": regex})
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		label := metaName(name)
		keep("("+labels[name]+");true", "__meta_kubernetes_service_label_"+label, "__meta_kubernetes_service_labelpresent_"+label)
	}
	keep(port, "__meta_kubernetes_endpointslice_port_name")
	set("namespace", "__meta_kubernetes_namespace", "(.*)")
	set("service", "__meta_kubernetes_service_name", "(.*)")
	set("pod", "__meta_kubernetes_pod_name", "(.*)")
	set("container", "__meta_kubernetes_pod_container_name", "(.*)")
	steps = append(steps, map[string]any{"action": "drop", "source_labels": []string{"__meta_kubernetes_pod_phase"}, "regex": "(Failed|Succeeded)"})
	set("job", "__meta_kubernetes_service_name", "(.*)")
	if jobLabel != "" {
		set("job", "__meta_kubernetes_service_label_"+metaName(jobLabel), "(.+)")
	}
	return append(steps, map[string]any{"target_label": "endpoint", "replacement": port})
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// metaName is how discovery writes the name of a label.
func metaName(label string) string { return notInNames.ReplaceAllString(label, "_") }
