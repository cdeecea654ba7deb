package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestUpgradeRestartsPodsOfChangedSecrets changes Secrets between upgrades on the
// real kube-apiserver: pods with a changed Secret are restarted, others are not.
func TestUpgradeRestartsPodsOfChangedSecrets(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "erasureLedger.enabled=true,milvus.auth.existingSecret=milvus,chat.url=https://chat.example.test,chat.model=big,chat.existingSecret=chat")
	installing.RLock()
	t.Cleanup(installing.RUnlock)
	t.Cleanup(func() { uninstall(t, r.namespace) })
	for _, name := range []string{"db-owner", "db-app", "milvus", "chat"} {
		r.applySecret(name, "first")
	}
	r.helm(append([]string{"install"}, r.chart...)...)
	before := r.checksums()
	for _, step := range []struct {
		change    string
		restarted []string
	}{
		{change: ""},
		{change: "db-owner"}, // only the migration Job uses it
		{change: "chat", restarted: []string{"api"}},
		{change: "milvus", restarted: []string{"api", "operator"}},
		{change: "db-app", restarted: []string{"api", "operator", "erasures"}},
	} {
		if step.change != "" {
			r.applySecret(step.change, "second")
		}
		r.upgrade()
		after := r.checksums()
		for component := range before {
			want := slices.Contains(step.restarted, component)
			if restarted := after[component] != before[component]; restarted != want {
				t.Errorf("after a change of Secret %q, component %s is restarted: %t, want %t", step.change, component, restarted, want)
			}
		}
		before = after
	}
}

// TestUpgradeKeepsDemoPasswords: a second upgrade neither changes the passwords nor
// restarts a pod.
func TestUpgradeKeepsDemoPasswords(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "")
	installing.RLock()
	t.Cleanup(installing.RUnlock)
	t.Cleanup(func() { uninstall(t, r.namespace) })
	r.chart = []string{"mnemo", chart, "-f", "testdata/values/demo.yaml", "--set", "crds.install=false,erasureLedger.enabled=true,operator.watchNamespaces={" + r.namespace + "}"}
	r.helm(append([]string{"install"}, r.chart...)...)
	state := func() string {
		return fmt.Sprint(r.checksums(), r.get("secret", "mnemo-demo-app", "{.data}"), r.get("secret", "mnemo-demo-milvus", "{.data}"))
	}
	before := state()
	r.upgrade()
	if after := state(); after != before {
		t.Errorf("checksums and passwords after an upgrade:\n%s\nwant\n%s", after, before)
	}
}

// TestRenderedManifestsHaveNoChecksum: without a cluster nothing is known about
// the Secrets, and the manifests must not change.
func TestRenderedManifestsHaveNoChecksum(t *testing.T) {
	t.Parallel()
	if manifests := render(t, "-f", "testdata/values/everything.yaml"); strings.Contains(manifests, "checksum/secrets") {
		t.Error("helm template renders a checksum of unknown Secrets")
	}
}

func (r *testRelease) applySecret(name, password string) {
	r.t.Helper()
	secret := object{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": r.namespace},
		"stringData": map[string]any{"username": "mnemo", "password": password, "api-key": password},
	}
	kubectl(r.t, manifest(r.t, []object{secret}), "apply", "-f", "-")
}

// checksums returns the annotations of the pods of each component that keeps connections to the stores.
func (r *testRelease) checksums() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for component, kind := range map[string]string{"api": "deployment", "operator": "deployment", "erasures": "statefulset"} {
		all[component] = r.get(kind, "mnemo-"+component, `{.spec.template.metadata.annotations.checksum/secrets}`)
		if all[component] == "" {
			r.t.Errorf("component %s has no checksum of its Secrets", component)
		}
	}
	return all
}

func (r *testRelease) get(kind, name, jsonPath string) string {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", "-n", r.namespace, "get", kind, name, "-o", "jsonpath="+jsonPath)
	if err != nil {
		r.t.Fatalf("get %s %s: %v\n%s", kind, name, err, out)
	}
	return out
}
