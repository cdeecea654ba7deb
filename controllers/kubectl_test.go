package controllers_test

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func (w *world) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"--kubeconfig", testkit.KubeConfigFile(t), "--namespace", w.ns}, args...)
	out, err := exec.CommandContext(t.Context(), testkit.Kubectl(t), args...).CombinedOutput()
	return string(out), err
}

// TestExplain: every field of a spec says what it is, its default, and whether
// it may be changed.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	out, err := w.kubectl(t, "explain", "tenant.spec")
	if err != nil {
		t.Fatalf("kubectl explain: %v\n%s", err, out)
	}
	_, fields, _ := strings.Cut(out, "FIELDS:")
	described := map[string]string{}
	for field := range strings.SplitSeq(strings.TrimSpace(fields), "\n\n") {
		name, text, _ := strings.Cut(strings.TrimSpace(field), "\t")
		described[name] = strings.Join(strings.Fields(text), " ")
	}
	for field := range reflect.TypeFor[v1alpha1.TenantSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		text := described[name]
		if !strings.Contains(text, name+" ") || !strings.Contains(text, "efault") || !strings.Contains(text, "utable") {
			t.Errorf("%s is explained by %q, want what it is, its default and whether it may be changed", name, text)
		}
	}
}

func TestKubectlWait(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.expectReady(t, w.newTenant("alice"))
	if out, err := w.kubectl(t, "wait", "--for=condition=Ready", "tenant/acme", "--timeout=20s"); err != nil {
		t.Errorf("kubectl wait: %v\n%s", err, out)
	}
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = true })
	w.expectReconciled(t)
	if out, err := w.kubectl(t, "wait", "--for=condition=Suspended", "tenant/acme", "--timeout=20s"); err != nil {
		t.Errorf("kubectl wait for a suspended tenant: %v\n%s", err, out)
	}
}
