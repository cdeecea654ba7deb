package charts_test

import (
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

// TestHookPodsUseConfiguredNodesAndResources: otherwise `helm uninstall` fails on a cluster with tainted nodes or a
// quota on limits.
func TestHookPodsUseConfiguredNodesAndResources(t *testing.T) {
	t.Parallel()
	const hooks = `hooks={"nodeSelector":{"a":"b"},"tolerations":[{"operator":"Exists"}],"priorityClassName":"high",` +
		`"affinity":{"nodeAffinity":{}},"resources":{"limits":{"cpu":"1"}}}`
	pods := podSpecs(parse(t, render(t, "-f", "testdata/values/external.yaml", "--set-json", hooks)))
	for _, pod := range []string{"Pod/mnemo-test", "Job/mnemo-uninstall"} {
		spec, _ := pods[pod]["spec"].(map[string]any)
		got := []any{spec["nodeSelector"], spec["tolerations"], spec["priorityClassName"], spec["affinity"]}
		want := []any{map[string]any{"a": "b"}, []any{map[string]any{"operator": "Exists"}}, "high", map[string]any{"nodeAffinity": map[string]any{}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", pod, diff)
		}
		if cpu := object(list(spec["containers"])[0]).at("resources", "limits", "cpu"); cpu != "1" {
			t.Errorf("%s: CPU limit %v, want 1", pod, cpu)
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
