package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// recorder records the requests to the API server.
type recorder struct {
	next http.RoundTripper

	mu      sync.Mutex
	used    map[string]bool // rights, as rightsOf writes them
	refused map[string]bool
	writes  int // but for leases and what is only tried
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	right, ok := rightFor(req)
	if err != nil || !ok {
		return res, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[right] = true
	if res.StatusCode == http.StatusForbidden {
		r.refused[right] = true
	}
	if req.Method != http.MethodGet && !strings.Contains(right, "leases") && req.URL.Query().Get("dryRun") == "" {
		r.writes++
	}
	return res, err
}

func (r *recorder) written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// rightFor returns the right that a request requires, for example "mnemo.dev
// tenants/status patch"; false for discovery requests.
func rightFor(req *http.Request) (string, bool) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}[req.Method]
	if req.Method == http.MethodGet && len(parts) == 1 {
		if verb = "list"; req.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return strings.TrimSpace(group + " " + resource + " " + verb), true
}

// rightsOf returns the rights that rules grant.
func rightsOf(rules []rbacv1.PolicyRule) []string {
	var rights []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					rights = append(rights, strings.TrimSpace(group+" "+resource+" "+verb))
				}
			}
		}
	}
	return rights
}

// kustomize builds a directory of config and decodes its roles.
func kustomize(t *testing.T, folder string) (roles []rbacv1.Role, clusterRoles []rbacv1.ClusterRole) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), testkit.Kubectl(t), "kustomize", "../config/"+folder).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v", err)
	}
	for docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		var object rbacv1.Role // a cluster's has the same fields
		if err := docs.Decode(&object); errors.Is(err, io.EOF) {
			return roles, clusterRoles
		} else if err != nil {
			t.Fatal(err)
		}
		switch object.Kind {
		case "Role":
			roles = append(roles, object)
		case "ClusterRole":
			clusterRoles = append(clusterRoles, rbacv1.ClusterRole{ObjectMeta: object.ObjectMeta, Rules: object.Rules})
		}
	}
}

// grant grants the rights of config/rbac-namespaced to a service account of the
// namespace, in that namespace only, and returns them.
func (e *env) grant(t *testing.T) []string {
	t.Helper()
	own, cluster := kustomize(t, "rbac-namespaced/operator")
	if len(own) != 1 {
		t.Fatalf("len(own) = %d, want 1", len(own))
	}
	if len(cluster) != 1 {
		t.Fatalf("len(cluster) = %d, want 1", len(cluster))
	}
	rights := append(e.bind(t, e.ns, "role-0", own[0].Rules), e.grantTenants(t, e.ns)...)
	role := cluster[0]
	role.Name = e.ns
	e.mustCreate(t, &role)
	binding := &rbacv1.ClusterRoleBinding{Subjects: e.subjects(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: e.ns}}
	binding.Name = e.ns
	e.mustCreate(t, binding)
	t.Cleanup(func() {
		if err := errors.Join(e.Delete(context.Background(), binding), e.Delete(context.Background(), &role)); err != nil {
			t.Error(err)
		}
	})
	return append(rights, rightsOf(role.Rules)...)
}

// grantTenants grants the rights in a watched namespace to the service account of grant.
func (e *env) grantTenants(t *testing.T, namespace string) []string {
	t.Helper()
	tenants, none := kustomize(t, "rbac-namespaced/tenants")
	if len(tenants) != 1 {
		t.Fatalf("len(tenants) = %d, want 1", len(tenants))
	}
	if len(none) != 0 {
		t.Fatalf("len(none) = %d, want 0", len(none))
	}
	return e.bind(t, namespace, tenantsRole, tenants[0].Rules)
}

// tenantsRole is the name of the Role and the RoleBinding of grantTenants.
const tenantsRole = "tenants"

// bind grants rules in a namespace, and returns their rights.
func (e *env) bind(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule) []string {
	t.Helper()
	role := &rbacv1.Role{Rules: rules}
	role.Namespace, role.Name = namespace, name
	e.mustCreate(t, role)
	binding := &rbacv1.RoleBinding{Subjects: e.subjects(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
	binding.Namespace, binding.Name = namespace, name
	e.mustCreate(t, binding)
	return rightsOf(rules)
}

// subjects returns the service account of grant.
func (e *env) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: "mnemo-operator", Namespace: e.ns}}
}

// TestNamespacedRightsMatchClusterRights compares the two kinds of installation.
func TestNamespacedRightsMatchClusterRights(t *testing.T) {
	t.Parallel()
	_, whole := kustomize(t, "rbac")
	_, operator := kustomize(t, "rbac-namespaced/operator")
	tenants, _ := kustomize(t, "rbac-namespaced/tenants")
	want := rightsOf(whole[0].Rules)
	got := append(rightsOf(operator[0].Rules), rightsOf(tenants[0].Rules)...)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/rbac-namespaced is not what config/rbac/role.yaml grants (-role +namespaced):\n%s", diff)
	}
}

// runRights exercises the operator in one namespace with exactly the rights of
// config/rbac-namespaced: none may be missing and none unused.
func runRights(t *testing.T) {
	e := setupRun(t)
	granted := e.grant(t)
	e.user = "system:serviceaccount:" + e.ns + ":mnemo-operator"
	changes := make(chan tenant.ID)
	e.run(t, controllers.Config{Resync: time.Hour, Poll: 20 * time.Millisecond, Changes: changes,
		LeaderElection: true, LeaderElectionNamespace: e.ns, CellsSecret: types.NamespacedName{Namespace: e.ns, Name: "mnemo-cells"}})
	t.Cleanup(func() {
		e.recorder.mu.Lock()
		defer e.recorder.mu.Unlock()
		if len(e.recorder.refused) > 0 {
			t.Errorf("missing rights: %v", e.recorder.refused)
		}
	})
	withProvider := e.newTenant("alice", "bob")
	withProvider.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test", EmailDomains: []string{"acme.test"}}
	e.mustCreate(t, withProvider)
	e.eventuallyReady(t)

	for generation := range int64(3) { // updates Secrets, and repeats an event
		e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = generation + 2 })
		eventually(t, func() bool { return e.tenant(t).Status.Users[0].TokenGeneration == generation+2 })
	}
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[:1] })
	eventually(t, func() bool {
		gone := &corev1.Secret{}
		gone.Namespace, gone.Name = e.ns, "acme-bob-access"
		return isGone(t, e.Client, gone)
	})
	// A Secret without labels is not cached and read from the API server.
	secret := e.secret(t, "acme-alice-access")
	secret.Labels = nil
	if err := e.Update(t.Context(), secret); err != nil {
		t.Fatalf("remove labels: %v", err)
	}
	eventually(t, func() bool { return len(e.secret(t, "acme-alice-access").Labels) == 3 })
	tn := e.tenant(t)
	e.mustDelete(t, tn)
	eventually(t, func() bool { return isGone(t, e.Client, tn) })
	cell := e.newCell()
	e.mustCreate(t, cell)
	eventually(t, func() bool { return e.cellReason(t) == v1alpha1.ReasonConnected })
	e.mustDelete(t, cell)
	eventually(t, func() bool { return isGone(t, e.Client, cell) })

	expected := []string{
		// Older API servers require a list before a watch.
		"secrets list", "mnemo.dev tenants list", "mnemo.dev cells list",
		// The sweep reads Tenants that are missing from the cache; none is here.
		"mnemo.dev tenants get",
		// A repeated event is patched into a series.
		"events.k8s.io events patch",
		// Required for blockOwnerDeletion if owner references are enforced.
		"mnemo.dev tenants/finalizers update",
	}
	spare := func() []string {
		e.recorder.mu.Lock()
		defer e.recorder.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(granted), func(right string) bool { return e.recorder.used[right] })
	}
	// Events are sent asynchronously.
	for started := time.Now(); len(spare()) > len(expected) && time.Since(started) < 10*time.Second; {
		isGone(t, e.Client, tn)
	}
	found := spare()
	slices.Sort(found)
	slices.Sort(expected)
	if diff := cmp.Diff(expected, found); diff != "" {
		t.Errorf("unused rights (-expected +got):\n%s", diff)
	}
}

// runShardRights: an operator of one shard finds orphans with rights in its namespace only.
func runShardRights(t *testing.T) {
	e := setupRun(t)
	e.grant(t)
	e.user = "system:serviceaccount:" + e.ns + ":mnemo-operator"
	orphan := otherSpec(e.ns, "acme")
	if _, err := e.store.Apply(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	selector, err := labels.Parse("mnemo.dev/shard=a")
	if err != nil {
		t.Fatal(err)
	}
	e.run(t, controllers.Config{Selector: selector, Resync: time.Hour, Sweep: 20 * time.Millisecond, Cluster: "cluster-1"})
	eventually(t, func() bool { return e.record(t, orphan.ID).State == tenant.Retained })
}
