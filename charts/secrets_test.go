package charts_test

import (
	"strings"
	"testing"
)

// TestUpgradeRestartsPodsOfChangedSecrets changes Secrets between upgrades on the
// real kube-apiserver: pods with a changed Secret are restarted, others are not.
func TestUpgradeRestartsPodsOfChangedSecrets(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "chat.url=https://chat.example.test,chat.model=big,chat.existingSecret=chat")
	installing.RLock()
	t.Cleanup(installing.RUnlock)
	t.Cleanup(func() { uninstall(t, r.namespace) })
	for _, name := range []string{"db-owner", "db-app", "chat"} {
		r.applySecret(name, "first")
	}
	r.helm(append([]string{"install"}, r.chart...)...)
	api, operator := r.checksums()
	for _, step := range []struct {
		change        string
		api, operator bool // restarted
	}{
		{"", false, false},
		{"db-owner", false, false}, // only the migration Job uses it
		{"chat", true, false},
		{"db-app", true, true},
	} {
		if step.change != "" {
			r.applySecret(step.change, "second")
		}
		r.upgrade()
		newAPI, newOperator := r.checksums()
		if restarted := newAPI != api; restarted != step.api {
			t.Errorf("after a change of Secret %q API servers are restarted: %t, want %t", step.change, restarted, step.api)
		}
		if restarted := newOperator != operator; restarted != step.operator {
			t.Errorf("after a change of Secret %q the operator is restarted: %t, want %t", step.change, restarted, step.operator)
		}
		api, operator = newAPI, newOperator
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
	r.chart = []string{"mnemo", chart, "-f", "testdata/values/demo.yaml", "--set", "crds.install=false,operator.watchNamespaces={" + r.namespace + "}"}
	r.helm(append([]string{"install"}, r.chart...)...)
	state := func() string {
		api, operator := r.checksums()
		return strings.Join([]string{api, operator, r.get("secret", "mnemo-demo-app", "{.data}"), r.get("secret", "mnemo-demo-milvus", "{.data}")}, " ")
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

// checksums returns the annotations of the pods of API server and operator.
func (r *testRelease) checksums() (api, operator string) {
	r.t.Helper()
	const path = `{.spec.template.metadata.annotations.checksum/secrets}`
	api, operator = r.get("deployment", "mnemo-api", path), r.get("deployment", "mnemo-operator", path)
	if api == "" || operator == "" {
		r.t.Errorf("checksums of API server %q and operator %q, want both", api, operator)
	}
	return api, operator
}

func (r *testRelease) get(kind, name, jsonPath string) string {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", "-n", r.namespace, "get", kind, name, "-o", "jsonpath="+jsonPath)
	if err != nil {
		r.t.Fatalf("get %s %s: %v\n%s", kind, name, err, out)
	}
	return out
}
