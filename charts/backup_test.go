package charts_test

import (
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// TestRestoreScalesDownAndUp runs the kubectl and helm commands of docs/backup.md,
// "Restore in the same cluster": nothing serves while the database is replaced,
// and an upgrade restores the replicas.
func TestRestoreScalesDownAndUp(t *testing.T) {
	t.Parallel()
	t.Run("with a fixed number of replicas", func(t *testing.T) {
		t.Parallel()
		r := installRelease(t, "api.replicas=2")
		r.expectReplicas("2 1")
		r.scaleDown()
		r.expectReplicas("0 0")
		r.upgrade()
		r.expectReplicas("2 1")
	})
	t.Run("with an autoscaler", func(t *testing.T) {
		t.Parallel()
		r := installRelease(t, "api.autoscaling.enabled=true")
		r.expectAutoscaler(true)
		r.scaleDown()
		r.expectAutoscaler(false)
		r.expectReplicas("0 0")
		r.upgrade()
		r.expectAutoscaler(true)
		r.expectReplicas("0 1") // the chart sets no replicas, and an autoscaler does nothing at 0
		r.kubectl("scale", "deployment", "mnemo-api", "--replicas=1")
		if got := r.replicas(); got != "1 1" && got != "2 1" { // the autoscaler may have raised it to its minimum
			t.Errorf("replicas of API server and operator: %q, want 1 or 2 and 1", got)
		}
	})
}

// testRelease is a release of the chart on the real kube-apiserver.
type testRelease struct {
	t         *testing.T
	namespace string
	chart     []string // arguments of helm install and helm upgrade
}

func installRelease(t *testing.T, set string) *testRelease {
	t.Helper()
	installing.RLock()
	t.Cleanup(installing.RUnlock)
	r := newRelease(t, set)
	t.Cleanup(func() { uninstall(t, r.namespace) })
	r.helm(append([]string{"install"}, r.chart...)...)
	return r
}

// newRelease returns a release that is not installed yet, in its own namespace.
func newRelease(t *testing.T, set string) *testRelease {
	t.Helper()
	r := &testRelease{t: t, namespace: newNamespace(t)}
	r.chart = []string{
		"mnemo", chart, "-f", "testdata/values/claim.yaml",
		"--set", "gateway.enabled=false,operator.watchNamespaces={" + r.namespace + "}," + set,
	}
	return r
}

func (r *testRelease) helm(args ...string) {
	r.t.Helper()
	if out, err := helm(r.t, append(args, "-n", r.namespace, "--kubeconfig", testkit.KubeConfigFile(r.t))...); err != nil {
		r.t.Fatalf("helm %s: %v\n%s", args[0], err, out)
	}
}

func (r *testRelease) kubectl(args ...string) {
	r.t.Helper()
	kubectl(r.t, "", append([]string{"-n", r.namespace}, args...)...)
}

// scaleDown runs the first commands of the procedure.
func (r *testRelease) scaleDown() {
	r.t.Helper()
	r.kubectl("delete", "horizontalpodautoscaler", "mnemo-api", "--ignore-not-found")
	r.kubectl("scale", "deployment", "mnemo-api", "mnemo-operator", "--replicas=0")
	r.kubectl("wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component in (api,operator)", "--timeout=2m")
}

func (r *testRelease) upgrade() {
	r.t.Helper()
	r.helm(append([]string{"upgrade"}, r.chart...)...)
}

// replicas returns the replicas of the API server and of the operator.
func (r *testRelease) replicas() string {
	r.t.Helper()
	got, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "deployment", "mnemo-api", "mnemo-operator", "-o", "jsonpath={.items[*].spec.replicas}")
	if err != nil {
		r.t.Fatalf("get replicas: %v\n%s", err, got)
	}
	return strings.TrimSpace(got)
}

func (r *testRelease) expectReplicas(want string) {
	r.t.Helper()
	if got := r.replicas(); got != want {
		r.t.Errorf("replicas of API server and operator: %q, want %q", got, want)
	}
}

func (r *testRelease) expectAutoscaler(want bool) {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "horizontalpodautoscaler", "-o", "name")
	if err != nil {
		r.t.Fatalf("get autoscalers: %v\n%s", err, out)
	}
	if got := strings.Contains(out, "mnemo-api"); got != want {
		r.t.Errorf("autoscaler exists: %v, want %v", got, want)
	}
}
