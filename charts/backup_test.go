package charts_test

import (
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// TestUpgradeScalesBack runs the first and the last lines of docs/backup.md,
// "The same cluster": nothing serves while the database is replaced, and an
// upgrade to what is installed takes back what `kubectl scale` did.
func TestUpgradeScalesBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ autoscaling, installed, after string }{
		"with replicas":      {"false", "2 1", "2 1"},
		"with an autoscaler": {"true", "", "0 1"}, // it does nothing at 0, and no manifest names a number
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scalesBack(t, test.autoscaling, test.installed, test.after)
		})
	}
}

func scalesBack(t *testing.T, autoscaling, installed, after string) {
	t.Helper()
	installing.RLock()
	defer installing.RUnlock()
	ns := newNamespace(t)
	release := func(args ...string) {
		t.Helper()
		if out, err := helm(t, append(args, "-n", ns, "--kubeconfig", testkit.KubeConfigFile(t))...); err != nil {
			t.Fatalf("helm %s: %v\n%s", args[0], err, out)
		}
	}
	chart := []string{
		"mnemo", chart, "-f", "testdata/values/claim.yaml",
		"--set", "gateway.enabled=false,api.replicas=2,operator.watchNamespaces={" + ns + "},api.autoscaling.enabled=" + autoscaling,
	}
	wantReplicas := func(want string) {
		t.Helper()
		got, err := tryKubectl(t, "", "-n", ns, "get", "deployment", "mnemo-api", "mnemo-operator", "-o", "jsonpath={.items[*].spec.replicas}")
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("replicas of API server and operator: %q (%v), want %q", got, err, want)
		}
	}
	release(append([]string{"install"}, chart...)...)
	if installed != "" { // else it is the autoscaler's
		wantReplicas(installed)
	}
	kubectl(t, "", "-n", ns, "scale", "deployment", "mnemo-api", "mnemo-operator", "--replicas=0")
	kubectl(t, "", "-n", ns, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component in (api,operator)", "--timeout=2m")
	wantReplicas("0 0")
	release(append([]string{"upgrade"}, chart...)...)
	wantReplicas(after)
	release("uninstall", "mnemo", "--no-hooks") // what is not in the namespace
}
