package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUserAndGroupsCanBeOmitted: OpenShift assigns both, and rejects pods that ask for others.
func TestUserAndGroupsCanBeOmitted(t *testing.T) {
	t.Parallel()
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			omitted := []string{"--set-json", `podSecurity={"runAsUser":null,"runAsGroup":null,"fsGroup":null}`}
			for pod, template := range podSpecs(parse(t, render(t, append(values, omitted...)...))) {
				want := map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
				got, _ := template.at("spec", "securityContext").(map[string]any)
				delete(got, "fsGroupChangePolicy")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("security context of %s: -want +got\n%s", pod, diff)
				}
			}
		})
	}
}

// TestEveryPodUsesConfiguredNodes: on a cluster with tainted nodes, a pod without tolerations is never scheduled, and
// `helm uninstall` fails.
func TestEveryPodUsesConfiguredNodes(t *testing.T) {
	t.Parallel()
	const nodes = `{"nodeSelector":{"a":"b"},"tolerations":[{"operator":"Exists"}],"priorityClassName":"high","affinity":{"nodeAffinity":{"a":"b"}}}`
	var set []string
	for _, component := range []string{"api", "operator", "migrate", "backup", "erasureLedger", "hooks", "demoPods", "postgres.cnpg"} {
		set = append(set, "--set-json", component+"="+nodes)
	}
	want := map[string]any{
		"nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"operator": "Exists"}},
		"priorityClassName": "high", "affinity": map[string]any{"nodeAffinity": map[string]any{"a": "b"}},
	}
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := parse(t, render(t, append(slices.Clone(values), set...)...))
			for pod, template := range podSpecs(objects) {
				if diff := cmp.Diff(want, placement(template.at("spec"))); diff != "" {
					t.Errorf("%s: -want +got\n%s", pod, diff)
				}
			}
			for _, o := range objects {
				if o.kind() == "Pooler" {
					if diff := cmp.Diff(want, placement(o.at("spec", "template", "spec"))); diff != "" {
						t.Errorf("Pooler: -want +got\n%s", diff)
					}
				}
				if o.kind() == "Cluster" {
					// CloudNativePG has these fields elsewhere.
					got := placement(o.at("spec", "affinity"))
					got["affinity"] = map[string]any{"nodeAffinity": o.at("spec", "affinity", "nodeAffinity")}
					got["priorityClassName"] = o.at("spec", "priorityClassName")
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("Cluster: -want +got\n%s", diff)
					}
				}
			}
		})
	}
}

// placement returns the fields of a pod's spec that select its nodes and its priority.
func placement(spec any) map[string]any {
	fields, _ := spec.(map[string]any)
	got := map[string]any{}
	for _, field := range []string{"nodeSelector", "tolerations", "priorityClassName", "affinity"} {
		if value, found := fields[field]; found {
			got[field] = value
		}
	}
	return got
}

// TestHookAndDemoPodsUseConfiguredResources: a quota on limits rejects pods with a container without limits.
func TestHookAndDemoPodsUseConfiguredResources(t *testing.T) {
	t.Parallel()
	pods := podSpecs(parse(t, render(t, "-f", "testdata/values/demo.yaml", "--set-string",
		"hooks.resources.limits.cpu=2,demoPods.resources.postgres.limits.cpu=2,demoPods.resources.milvus.limits.cpu=2")))
	for _, pod := range []string{"Pod/mnemo-test", "Job/mnemo-uninstall", "Deployment/mnemo-demo-postgres", "Deployment/mnemo-demo-milvus"} {
		if cpu := object(list(pods[pod].at("spec", "containers"))[0]).at("resources", "limits", "cpu"); cpu != "2" {
			t.Errorf("%s: CPU limit %v, want 2", pod, cpu)
		}
	}
}

// TestWaitContainersUseConfiguredResources: a quota on limits rejects pods with a container without limits.
func TestWaitContainersUseConfiguredResources(t *testing.T) {
	t.Parallel()
	found := 0
	for pod, template := range podSpecs(parse(t, render(t, "-f", "testdata/values/everything.yaml", "--set", "waitResources.limits.cpu=2"))) {
		for _, container := range list(template.at("spec", "initContainers")) {
			if name, _ := container["name"].(string); !strings.HasPrefix(name, "wait-") {
				continue
			}
			found++
			if cpu := object(container).at("resources", "limits", "cpu"); cpu != 2 {
				t.Errorf("%s: CPU limit %v, want 2", pod, cpu)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d containers, want those of the API server, the operator and the erasure ledger", found)
	}
}
