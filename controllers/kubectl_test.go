package controllers_test

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func (e *env) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"--kubeconfig", testkit.KubeConfigFile(t), "--namespace", e.ns}, args...)
	out, err := exec.CommandContext(t.Context(), testkit.Kubectl(t), args...).CombinedOutput()
	return string(out), err
}

// TestExplain: the description of every spec field has its default and mutability.
func TestExplain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	var out string
	eventually(t, func() (ok bool) { // the API server publishes the schema of a new resource after a while
		var err error
		out, err = e.kubectl(t, "explain", "tenant.spec")
		return err == nil
	})
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
			t.Errorf("%s is described as %q, want the field's name, default and mutability", name, text)
		}
	}
}

func TestKubectlWait(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	if out, err := e.kubectl(t, "wait", "--for=condition=Ready", "tenant/acme", "--timeout=20s"); err != nil {
		t.Errorf("kubectl wait: %v\n%s", err, out)
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = true })
	e.expectReconciled(t)
	if out, err := e.kubectl(t, "wait", "--for=condition=Suspended", "tenant/acme", "--timeout=20s"); err != nil {
		t.Errorf("kubectl wait for a suspended tenant: %v\n%s", err, out)
	}
}

// TestKubectlGetPrintsSuspensionInForce: data requests are answered until the operator has stored spec.suspended.
func TestKubectlGetPrintsSuspensionInForce(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.expectReady(t, e.newTenant("alice"))
	suspended := func() string {
		t.Helper()
		out, err := e.kubectl(t, "get", "tenants")
		if err != nil {
			t.Fatalf("kubectl get: %v\n%s", err, out)
		}
		header, row, _ := strings.Cut(out, "\n")
		from, to := strings.Index(header, "SUSPENDED"), strings.Index(header, "USERS")
		if from < 0 || to < from || len(row) < to {
			t.Fatalf("kubectl get tenants printed %q, want column SUSPENDED", out)
		}
		return strings.TrimSpace(row[from:to])
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = true })
	expectEqual(t, "before the operator has stored it", suspended(), "")
	e.expectReconciled(t)
	expectEqual(t, "afterwards", suspended(), "True")
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Suspended = false })
	expectEqual(t, "before the operator has stored the end", suspended(), "True")
	e.expectReconciled(t)
	expectEqual(t, "after the end", suspended(), "")
}
