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

// unchecked is the kind whose definition no package registry has: the server is
// not asked about it, the golden files show it. It was looked at by hand, with
// the definition of milvus-operator 1.3.8.
const unchecked = "milvus.io/v1beta1/Milvus"

// TestServerTakesIt: the real kube-apiserver takes every object, strictly, and
// warns of none, in namespaces that enforce the restricted standard.
func TestServerTakesIt(t *testing.T) {
	t.Parallel()
	installDefinitions(t)
	for name, file := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			args := []string{"-n", ns, "-f", file}
			if name == "everything" {
				args = append(args, "--set", "operator.watchNamespaces={"+ns+"}")
			}
			var checked, accounts []object
			objects := parse(t, render(t, args...))
			for _, o := range objects {
				if kindOf(o) == unchecked {
					continue
				}
				checked = append(checked, o)
				if o.kind() == "ServiceAccount" {
					accounts = append(accounts, o)
				}
			}
			kubectl(t, manifest(t, accounts), "-n", ns, "apply", "--server-side", "-f", "-") // pods need theirs to be there
			kubectl(t, manifest(t, checked), "-n", ns, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")

			// A Deployment is taken whatever its pods are like: the pods themselves are enforced.
			var pods []object
			for id, template := range podSpecs(objects) {
				name := strings.ToLower(strings.ReplaceAll(id, "/", "-"))
				pods = append(pods, object{
					"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
					"metadata": map[string]any{"name": name, "namespace": ns, "labels": template.at("metadata", "labels")},
				})
			}
			if len(pods) < 5 {
				t.Fatalf("%d pods, want API, operator, migration, uninstall and test at least", len(pods))
			}
			kubectl(t, manifest(t, pods), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		})
	}
}

// TestServerRefuses shows that the checks above can fail.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	installDefinitions(t)
	ns := newNamespace(t)
	for want, object := range map[string]string{
		"violates PodSecurity": `"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","image":"a","securityContext":{"runAsUser":0}}]}`,
		".spec.containrs":      `"apiVersion":"v1","kind":"Pod","spec":{"containrs":[],"containers":[{"name":"a","image":"a"}]}`,
		".spec.storag":         `"apiVersion":"postgresql.cnpg.io/v1","kind":"Cluster","spec":{"instances":1,"storag":{}}`,
	} {
		input := `{"metadata":{"name":"x","namespace":"` + ns + `"},` + object + `}`
		said, err := tryKubectl(t, input, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v, %s, want it refused with %q", object, err, said, want)
		}
	}
}

func kindOf(o object) string {
	version, _ := o["apiVersion"].(string)
	return version + "/" + o.kind()
}

// installDefinitions brings the custom resources of others, and ours.
func installDefinitions(t *testing.T) {
	t.Helper()
	files, err := devenv.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files["tenants"] = "../config/crd/bases/mnemo.dev_tenants.yaml"
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, string(raw), "apply", "--server-side", "--force-conflicts", "-f", "-")
		for _, state := range []string{"jsonpath={.status.conditions}", "condition=Established"} { // the second fails where there are none yet
			kubectl(t, string(raw), "wait", "--for="+state, "--timeout=60s", "-f", "-")
		}
	}
}

// newNamespace makes a namespace that enforces the restricted standard.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := "chart-" + strings.ToLower(rand.Text()[:10])
	kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+ns+`","labels":{
		"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`, "create", "-f", "-")
	t.Cleanup(func() {
		cmd := exec.Command(testkit.Kubectl(t), "delete", "namespace", ns, "--wait=false")
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

// kubectl runs kubectl as the administrator; a warning of the server is a failure.
func kubectl(t *testing.T, input string, args ...string) {
	t.Helper()
	if said, err := tryKubectl(t, input, args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

func tryKubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Kubectl(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testkit.KubeConfigFile(t))
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("Warning:")) {
		err = errors.New("the server warns")
	}
	return string(out), err
}

// installing is held by what installs releases: one asks for the operators of
// all others, and so must be alone.
var installing sync.RWMutex

// TestOneOperatorForATenant: a release does not go where another's operator has
// the same Tenants, and says so; beside it with namespaces of its own it does.
func TestOneOperatorForATenant(t *testing.T) {
	t.Parallel()
	installing.Lock()
	t.Cleanup(installing.Unlock) // after its release is gone
	first, second, a, b, c := newNamespace(t), newNamespace(t), newNamespace(t), newNamespace(t), newNamespace(t)
	run := func(args ...string) error {
		_, err := helm(t, append(args, "--kubeconfig", testkit.KubeConfigFile(t))...)
		return err
	}
	release := func(does, namespace string, watched ...string) []string {
		list, err := json.Marshal(append([]string{}, watched...)) // none is all of them, null would be no value
		if err != nil {
			t.Fatal(err)
		}
		return []string{does, "mnemo", chart, "-n", namespace, "-f", "testdata/values/external.yaml", "--set", "crds.install=false",
			"--set-json", "operator.watchNamespaces=" + string(list)}
	}
	t.Cleanup(func() { uninstall(t, first) })
	refused := func(reason, want string, watched ...string) {
		t.Helper()
		err := run(append(release("install", second, watched...), "--dry-run=server")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a refusal that says %q", reason, err, want)
		}
	}
	if err := run(release("install", first, a, b)...); err != nil {
		t.Fatalf("the first: %v", err)
	}
	refused("this one would have all", "of release "+first+"/mnemo already manages the Tenants in "+a+", "+b+";")
	refused("one in common", "already manages the Tenants in "+b+";", b, c)
	if err := run(append(release("install", second, c), "--dry-run=server")...); err != nil {
		t.Errorf("none in common: %v", err)
	}
	if err := run(release("upgrade", first)...); err != nil {
		t.Errorf("the same release, upgraded: %v", err)
	}
	refused("the other has all", "already manages the Tenants in all namespaces;", c)
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
