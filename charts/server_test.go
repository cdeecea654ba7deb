package charts_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// unchecked is a kind whose CRD is in no package registry, so the API server cannot
// validate it. It was validated manually with the CRD of milvus-operator 1.3.8.
const unchecked = "milvus.io/v1beta1/Milvus"

// TestServerAcceptsObjects applies every object to a real kube-apiserver, with
// strict validation and without warnings, in namespaces that enforce the
// restricted standard.
func TestServerAcceptsObjects(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			args := append([]string{"-n", ns}, values...)
			if name == "everything" {
				args = append(args, "--set", "operator.watchNamespaces={"+ns+"}")
			}
			var checked, accounts []object
			objects := parse(t, render(t, args...))
			for _, o := range objects {
				if kindOf(o) != unchecked {
					checked = append(checked, o)
				}
			}
			for _, template := range podSpecs(objects) {
				if name := template.at("spec", "serviceAccountName"); name != nil {
					accounts = append(accounts, object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name}})
				}
			}
			kubectl(t, manifest(t, accounts), "-n", ns, "apply", "--server-side", "-f", "-") // pods require existing service accounts
			kubectl(t, manifest(t, checked), "-n", ns, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")

			// Pod security applies to pods, not to Deployments.
			var pods []object
			for id, template := range podSpecs(objects) {
				name := strings.ToLower(strings.ReplaceAll(id, "/", "-"))
				pods = append(pods, object{
					"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
					"metadata": map[string]any{"name": name, "namespace": ns, "labels": template.at("metadata", "labels")},
				})
			}
			if len(pods) < 5 {
				t.Fatalf("%d pods, want at least API, operator, migration, pre-uninstall and test", len(pods))
			}
			kubectl(t, manifest(t, pods), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		})
	}
}

// TestServerRejectsInvalidObjects proves that the checks above can fail.
func TestServerRejectsInvalidObjects(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	ns := newNamespace(t)
	for want, object := range map[string]string{
		"violates PodSecurity": `"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","image":"a","securityContext":{"runAsUser":0}}]}`,
		".spec.containrs":      `"apiVersion":"v1","kind":"Pod","spec":{"containrs":[],"containers":[{"name":"a","image":"a"}]}`,
		".spec.storag":         `"apiVersion":"postgresql.cnpg.io/v1","kind":"Cluster","spec":{"instances":1,"storag":{}}`,
	} {
		input := `{"metadata":{"name":"x","namespace":"` + ns + `"},` + object + `}`
		out, err := tryKubectl(t, input, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s, want it rejected with %q", object, err, out, want)
		}
	}
}

func kindOf(o object) string {
	version, _ := o["apiVersion"].(string)
	return version + "/" + o.kind()
}

// definitions are the CRDs of Mnemo and of third parties, which all tests share.
var definitions struct {
	sync.Mutex

	installed bool
}

// installCRDs installs the definitions unless another test has done so.
func installCRDs(t *testing.T) {
	t.Helper()
	definitions.Lock()
	defer definitions.Unlock()
	if definitions.installed {
		return
	}
	files, err := devenv.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files["tenants"] = "../config/crd/bases/mnemo.dev_tenants.yaml"
	files["cells"] = "../config/crd/bases/mnemo.dev_cells.yaml"
	applyCRDs(t, files)
	definitions.installed = true
}

// applyCRDs installs CRDs from files, and waits until the API server serves them.
func applyCRDs(t *testing.T, files map[string]string) {
	t.Helper()
	var from []string
	for _, file := range files {
		from = append(from, "-f", file)
	}
	kubectl(t, "", append([]string{"apply", "--server-side", "--force-conflicts"}, from...)...)
	for _, state := range []string{"jsonpath={.status.conditions}", "condition=Established"} { // waiting for a condition fails while there are none
		kubectl(t, "", append([]string{"wait", "--for=" + state, "--timeout=60s"}, from...)...)
	}
}

// newNamespace creates a namespace that enforces the restricted standard.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := "chart-" + strings.ToLower(rand.Text()[:10])
	kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+ns+`","labels":{
		"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`, "create", "-f", "-")
	t.Cleanup(func() {
		cmd := exec.Command(testkit.Kubectl(t), "delete", "namespace", ns, "--wait=false", "--ignore-not-found")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+testkit.KubeConfigFile(t))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("delete namespace: %v\n%s", err, out)
		}
	})
	return ns
}

func manifest(t *testing.T, objects []object) string {
	t.Helper()
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	for _, o := range objects {
		if err := e.Encode(map[string]any(o)); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// kubectl runs kubectl as an administrator. A server warning is a failure.
func kubectl(t *testing.T, input string, args ...string) {
	t.Helper()
	if out, err := tryKubectl(t, input, args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func tryKubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Kubectl(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testkit.KubeConfigFile(t))
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("Warning:")) {
		err = errors.New("server warning")
	}
	return string(out), err
}

// installing is locked by tests that install releases. TestReleasesMustNotShareTenants
// locks it exclusively, because it looks for the operators of all other releases.
var installing sync.RWMutex

// TestReleasesMustNotShareTenants checks that a release whose operator would manage
// the Tenants of another release is rejected, and one with other namespaces or
// another label selector is not.
func TestReleasesMustNotShareTenants(t *testing.T) {
	t.Parallel()
	installing.Lock()
	t.Cleanup(installing.Unlock) // after the release is uninstalled
	first, second, a, b, c := newNamespace(t), newNamespace(t), newNamespace(t), newNamespace(t), newNamespace(t)
	run := func(args ...string) error {
		_, err := helm(t, append(args, "--kubeconfig", testkit.KubeConfigFile(t))...)
		return err
	}
	release := func(command, namespace string, watched ...string) []string {
		list, err := json.Marshal(append([]string{}, watched...)) // an empty list, as null would mean the default
		if err != nil {
			t.Fatal(err)
		}
		return []string{command, "mnemo", chart, "-n", namespace, "-f", "testdata/values/external.yaml", "--set", "crds.install=false",
			"--set", "admissionPolicy.enabled=false", // those of all namespaces would affect other tests
			"--set-json", "operator.watchNamespaces=" + string(list)}
	}
	t.Cleanup(func() { uninstall(t, first) })
	expectRejected := func(reason, want string, watched ...string) {
		t.Helper()
		err := run(append(release("install", second, watched...), "--dry-run=server")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that contains %q", reason, err, want)
		}
	}
	if err := run(release("install", first, a, b)...); err != nil {
		t.Fatalf("install the first release: %v", err)
	}
	expectRejected("new release with all namespaces", "of release "+first+"/mnemo already manages the Tenants in "+a+", "+b+";")
	expectRejected("one common namespace", "already manages the Tenants in "+b+";", b, c)
	if err := run(append(release("install", second, c), "--dry-run=server")...); err != nil {
		t.Errorf("no common namespace: %v", err)
	}
	if err := run(release("upgrade", first)...); err != nil {
		t.Errorf("upgrade of the same release: %v", err)
	}
	expectRejected("existing release with all namespaces", "already manages the Tenants in all namespaces;", c)

	// Labels divide the Tenants too (docs/cells.md, "Several databases").
	selecting := func(args []string, selector string) []string {
		return append(args, "--set", "operator.watchLabelSelector="+selector)
	}
	if err := run(selecting(release("upgrade", first), "database=a")...); err != nil {
		t.Errorf("upgrade of the same release with a selector: %v", err)
	}
	expectRejected("new release without a selector", "already manages the Tenants in all namespaces;", c)
	for selector, accepted := range map[string]bool{"database=a": false, "database=b": true} {
		err := run(append(selecting(release("install", second), selector), "--dry-run=server")...)
		if (err == nil) != accepted {
			t.Errorf("the other release selects database=a; new release with %s: %v, want it accepted: %t", selector, err, accepted)
		}
	}
}

// uninstall removes a release after its test, including its cluster-scoped
// objects, which do not go with the namespace.
func uninstall(t *testing.T, namespace string) {
	t.Helper()
	cmd := exec.Command("../hack/tool.sh", "helm", "uninstall", "mnemo", "-n", namespace, "--no-hooks", "--kubeconfig", testkit.KubeConfigFile(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
}

// TestUpgradeWithoutWatchedNamespace: a missing watched namespace is removed from the values; until then, upgrades fail.
func TestUpgradeWithoutWatchedNamespace(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	r, deleted := installRelease(t, "api.replicas=1"), newNamespace(t)
	both := []string{"--set", "operator.watchNamespaces={" + r.namespace + "," + deleted + "}"}
	r.upgrade(both...)
	kubectl(t, "", "delete", "namespace", deleted)
	args := append(append([]string{"upgrade"}, r.chart...), both...)
	_, err := helm(t, append(args, "-n", r.namespace, "--kubeconfig", testkit.KubeConfigFile(t))...)
	if err == nil || !strings.Contains(err.Error(), deleted) {
		t.Errorf("upgrade with a missing namespace: %v, want an error that names it", err)
	}
	r.upgrade()
}
