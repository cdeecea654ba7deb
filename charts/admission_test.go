package charts_test

import (
	"strings"
	"testing"
	"time"
)

// TestPreventDeletionIsEnforcedByAdmission installs the chart on the real
// kube-apiserver, without a running operator, and deletes a Tenant in every way
// that passes admission.
func TestPreventDeletionIsEnforcedByAdmission(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	r := installRelease(t, "api.replicas=1")
	r.createTenant("protected", true)
	r.createTenant("other", false)
	r.awaitPolicies("protected")

	const tenantRejected = "spec.preventDeletion of Tenant protected is true; set it to false to delete the Tenant"
	r.expectRejected(tenantRejected, "delete", "tenant", "protected")
	r.expectRejected(tenantRejected, "delete", "tenant", "protected", "--force", "--grace-period=0")
	r.expectRejected(tenantRejected, "delete", "--raw", "/apis/mnemo.dev/v1alpha1/namespaces/"+r.namespace+"/tenants") // a collection
	// The policy is ignored while the API server cannot read the Tenants, possibly after a parallel test changed the
	// CRD. The operator's finalizer, which does not run here, blocks such a deletion.
	const namespaceRejected = "spec.preventDeletion of Tenant protected is true; set it to false to delete the namespace"
	r.eventually("reject the deletion of the namespace", func() bool {
		out, err := tryKubectl(t, "", "delete", "namespace", r.namespace, "--dry-run=server")
		return err != nil && strings.Contains(out, namespaceRejected)
	})
	r.expectTenants("protected")

	r.createTenant("other", false)
	r.kubectl("delete", "tenant", "other")
	r.expectTenants("protected")
	r.kubectl("patch", "tenant", "protected", "--type=merge", "-p", `{"spec":{"preventDeletion":false}}`)
	r.kubectl("delete", "tenant", "protected")
	r.expectTenants("")
}

// TestUninstallRemovesAdmissionPolicies: a released Tenant and its namespace can be
// deleted after the chart is uninstalled.
func TestUninstallRemovesAdmissionPolicies(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	installing.RLock()
	t.Cleanup(installing.RUnlock)
	r := newRelease(t, "api.replicas=1")
	r.helm(append([]string{"install"}, r.chart...)...)
	r.createTenant("protected", true)
	r.awaitPolicies("protected")
	r.helm("uninstall", "mnemo", "--no-hooks")
	r.expectTenants("protected") // the uninstallation deletes no Tenant
	r.eventually("delete a Tenant after the uninstallation", func() bool {
		_, err := tryKubectl(t, "", "-n", r.namespace, "delete", "tenant", "protected")
		return err == nil
	})
}

// TestNamespacesStayDeletableWithoutTenants: the policy for namespaces must not
// affect others.
func TestNamespacesStayDeletableWithoutTenants(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	r := installRelease(t, "api.replicas=1")
	r.createTenant("protected", true)
	r.awaitPolicies("protected")
	empty := newNamespace(t)
	kubectl(t, "", "delete", "namespace", empty, "--dry-run=server")
	r.kubectl("patch", "tenant", "protected", "--type=merge", "-p", `{"spec":{"preventDeletion":false}}`)
	r.eventually("delete a namespace whose Tenants do not prevent it", func() bool {
		_, err := tryKubectl(t, "", "delete", "namespace", r.namespace, "--dry-run=server")
		return err == nil
	})
}

// TestOperatorChangesOnlyWatchedTenants: the operator may finalize a Tenant in a watched namespace without a RoleBinding in it,
// and may not change those of other releases.
func TestOperatorChangesOnlyWatchedTenants(t *testing.T) {
	t.Parallel()
	installCRDs(t)
	r := installRelease(t, "api.replicas=1")
	other := &testRelease{t: t, namespace: newNamespace(t)}
	r.createTenant("watched", false)
	other.createTenant("foreign", false)
	r.kubectl("delete", "rolebinding", "--all")
	asOperator := "--as=system:serviceaccount:" + r.namespace + ":mnemo-operator"
	finalizer := func(value string) string { return `{"metadata":{"finalizers":[` + value + `]}}` }
	change := func(r *testRelease, name, body string) (string, error) {
		return tryKubectl(t, "", "-n", r.namespace, "patch", "tenant", name, "--type=merge", "-p", body, asOperator)
	}
	r.eventually("reject a change outside the watched namespace", func() bool {
		out, err := change(other, "foreign", finalizer(`"mnemo.dev/test"`))
		return err != nil && strings.Contains(out, "the operator does not watch this namespace")
	})
	// kubectl reads what it patches.
	other.kubectl("create", "role", "status", "--verb=get", "--resource=tenants.mnemo.dev/status")
	other.kubectl("create", "rolebinding", "status", "--role=status", "--serviceaccount="+r.namespace+":mnemo-operator")
	other.expectRejected("the operator does not watch this namespace",
		"patch", "tenant", "foreign", "--subresource=status", "--type=merge", "-p", `{"status":{"id":"x"}}`, asOperator)
	for _, body := range []string{finalizer(`"mnemo.dev/test"`), finalizer("")} {
		if out, err := change(r, "watched", body); err != nil {
			t.Errorf("change in the watched namespace: %v, %s", err, out)
		}
	}
}

func (r *testRelease) createTenant(name string, preventDeletion bool) {
	r.t.Helper()
	tenant := object{
		"apiVersion": "mnemo.dev/v1alpha1", "kind": "Tenant",
		"metadata": map[string]any{"name": name, "namespace": r.namespace},
		"spec":     map[string]any{"preventDeletion": preventDeletion},
	}
	kubectl(r.t, manifest(r.t, []object{tenant}), "apply", "-f", "-")
}

// awaitPolicies waits until the API server enforces both policies, which takes a
// moment after their creation. A dry run is admitted like a deletion.
func (r *testRelease) awaitPolicies(tenant string) {
	r.t.Helper()
	for _, of := range [][]string{{"tenant", tenant}, {"namespace", r.namespace}} {
		r.eventually("reject the deletion of "+strings.Join(of, " "), func() bool {
			_, err := tryKubectl(r.t, "", append([]string{"-n", r.namespace, "delete", "--dry-run=server"}, of...)...)
			return err != nil
		})
	}
}

func (r *testRelease) eventually(what string, done func() bool) {
	r.t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(200*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			r.t.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}

func (r *testRelease) expectRejected(want string, args ...string) {
	r.t.Helper()
	out, err := tryKubectl(r.t, "", append([]string{"-n", r.namespace}, args...)...)
	if err == nil || !strings.Contains(out, want) {
		r.t.Errorf("kubectl %s: %v, %s, want it rejected with %q", strings.Join(args, " "), err, out, want)
	}
}

// expectTenants compares the names of the Tenants.
func (r *testRelease) expectTenants(want string) {
	r.t.Helper()
	got, err := tryKubectl(r.t, "", "-n", r.namespace, "get", "tenants", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil || got != want {
		r.t.Errorf("Tenants %q, %v, want %q", got, err, want)
	}
}
