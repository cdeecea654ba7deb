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

// defineMonitoring installs the CRDs of the Prometheus operator.
func defineMonitoring(t *testing.T) {
	t.Helper()
	files, err := devenv.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		kubectl(t, "", "apply", "--server-side", "--filename", files[kind])
		// `kubectl wait` fails for a CRD that has no conditions yet.
		eventually(t, time.Minute, func() string {
			if _, err := try(t.Context(), "", cluster.env["KUBECTL"], "wait", "--for=condition=Established", "--timeout=60s", "--filename", files[kind]); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// serviceAccount creates a service account with the usual permissions of Prometheus and
// returns the service discovery configuration for a Prometheus outside the cluster.
func serviceAccount(t *testing.T) map[string]any {
	t.Helper()
	kubectl(t, `
apiVersion: v1
kind: Namespace
metadata: {name: `+monitoringNamespace+`}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: `+monitoringNamespace+`}
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
subjects: [{kind: ServiceAccount, name: prometheus, namespace: `+monitoringNamespace+`}]
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
		"authorization": map[string]any{"credentials": kubectl(t, "", "create", "token", "prometheus", "--namespace", monitoringNamespace, "--duration=2h")},
		"tls_config":    map[string]any{"ca_file": file},
	}
}

// serviceMonitor has all fields that the chart's ServiceMonitor uses. Unknown fields are an
// error, because scrapeJobs must convert every field.
type serviceMonitor struct {
	JobLabel string `json:"jobLabel"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Endpoints []struct {
		Port        string       `json:"port"`
		Interval    string       `json:"interval"`
		Relabelings []relabeling `json:"relabelings"`
	} `json:"endpoints"`
}

// relabeling sets a label of a target. The API server adds the default action.
type relabeling struct {
	Action      string `json:"action"`
	TargetLabel string `json:"targetLabel"`
	Replacement string `json:"replacement"`
}

// scrapeJobs converts the ServiceMonitors in the cluster to scrape configurations as the
// Prometheus operator does.
func scrapeJobs(t *testing.T) (jobs []map[string]any) {
	t.Helper()
	var monitors struct {
		Items []struct {
			Metadata struct{ Name, Namespace string }
			Spec     json.RawMessage
		}
	}
	fetch(t, &monitors, "servicemonitors")
	discovery := serviceAccount(t)
	for _, m := range monitors.Items {
		var spec serviceMonitor
		d := json.NewDecoder(bytes.NewReader(m.Spec))
		d.DisallowUnknownFields()
		if err := d.Decode(&spec); err != nil {
			t.Fatalf("decode the ServiceMonitor: %v", err)
		}
		found := maps.Clone(discovery)
		found["namespaces"] = map[string]any{"names": []string{m.Metadata.Namespace}}
		for i, e := range spec.Endpoints {
			steps := relabelling(spec.Selector.MatchLabels, e.Port, spec.JobLabel)
			for _, r := range e.Relabelings {
				steps = append(steps, map[string]any{"action": r.Action, "target_label": r.TargetLabel, "replacement": r.Replacement})
			}
			jobs = append(jobs, map[string]any{
				"job_name":              fmt.Sprintf("serviceMonitor-%s-%s-%d", m.Metadata.Namespace, m.Metadata.Name, i),
				"kubernetes_sd_configs": []any{found},
				"scrape_interval":       e.Interval, "scrape_timeout": e.Interval,
				"relabel_configs": steps,
			})
		}
	}
	if len(jobs) == 0 {
		t.Fatal("no ServiceMonitor with an endpoint")
	}
	return jobs
}

// relabelling returns the steps that keep the named port of the Services with all given
// labels and set the labels of the target.
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

var invalidLabelChars = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// metaName returns a label's name as in the meta labels of service discovery.
func metaName(label string) string { return invalidLabelChars.ReplaceAllString(label, "_") }
