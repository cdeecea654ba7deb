package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// recorder notes what is asked of the API server.
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

// rightFor names the right a request needs, such as "mnemo.dev tenants/status
// patch"; false for those of discovery.
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

// rightsOf returns the rights that rules give.
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

// kustomize renders a folder of config and decodes its roles.
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

// grant gives the service account of the namespace what config/rbac-namespaced
// gives the operator's, in that namespace alone, and returns the rights.
func (w *world) grant(t *testing.T) []string {
	t.Helper()
	own, cluster := kustomize(t, "rbac-namespaced/operator")
	tenants, none := kustomize(t, "rbac-namespaced/tenants")
	if len(own) != 1 || len(tenants) != 1 || len(cluster) != 1 || len(none) != 0 {
		t.Fatalf("%d and %d roles, %d and %d cluster roles, want one of each and none", len(own), len(tenants), len(cluster), len(none))
	}
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "mnemo-operator", Namespace: w.ns}}
	var rights []string
	for i, role := range append(own, tenants...) {
		role.Namespace, role.Name = w.ns, fmt.Sprint("role-", i)
		w.mustCreate(t, &role)
		binding := &rbacv1.RoleBinding{Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}
		binding.Namespace, binding.Name = w.ns, role.Name
		w.mustCreate(t, binding)
		rights = append(rights, rightsOf(role.Rules)...)
	}
	role := cluster[0]
	role.Name = w.ns
	w.mustCreate(t, &role)
	binding := &rbacv1.ClusterRoleBinding{Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.ns}}
	binding.Name = w.ns
	w.mustCreate(t, binding)
	t.Cleanup(func() {
		if err := errors.Join(w.Delete(context.Background(), binding), w.Delete(context.Background(), &role)); err != nil {
			t.Error(err)
		}
	})
	return append(rights, rightsOf(role.Rules)...)
}

// TestNamespacedRightsAreTheClusters compares the two kinds of installation.
func TestNamespacedRightsAreTheClusters(t *testing.T) {
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

// runRights lets the operator do all it does in one namespace, as a service
// account with exactly the rights of config/rbac-namespaced, and finds none
// missing and none spare.
func runRights(t *testing.T) {
	w := setupRun(t)
	granted := w.grant(t)
	w.user = "system:serviceaccount:" + w.ns + ":mnemo-operator"
	changes := make(chan tenant.ID)
	w.run(t, controllers.Config{Resync: time.Hour, Poll: 20 * time.Millisecond, Changes: changes,
		LeaderElection: true, LeaderElectionNamespace: w.ns})
	t.Cleanup(func() {
		w.recorder.mu.Lock()
		defer w.recorder.mu.Unlock()
		if len(w.recorder.refused) > 0 {
			t.Errorf("rights that are missing: %v", w.recorder.refused)
		}
	})
	w.mustCreate(t, w.newTenant("alice", "bob"))
	w.eventuallyReady(t)

	for generation := range int64(3) { // updates Secrets, and repeats an event
		w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = generation + 2 })
		eventually(t, func() bool { return w.tenant(t).Status.Users[0].TokenGeneration == generation+2 })
	}
	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users = tn.Spec.Users[:1] })
	eventually(t, func() bool {
		gone := &corev1.Secret{}
		gone.Namespace, gone.Name = w.ns, "acme-bob-access"
		return isGone(t, w.Client, gone)
	})
	// Out of the cache's sight: it is read past it.
	secret := w.secret(t, "acme-alice-access")
	secret.Labels = nil
	if err := w.Update(t.Context(), secret); err != nil {
		t.Fatalf("strip labels: %v", err)
	}
	eventually(t, func() bool { return len(w.secret(t, "acme-alice-access").Labels) == 3 })
	tn := w.tenant(t)
	w.mustDelete(t, tn)
	eventually(t, func() bool { return isGone(t, w.Client, tn) })

	expected := []string{
		// Older servers do not send what there is with a watch.
		"secrets list", "mnemo.dev tenants list",
		// The sweep looks at what seems to be gone past the cache; nothing does here.
		"mnemo.dev tenants get",
		// An event that repeats with nothing changed becomes a series.
		"events.k8s.io events patch",
		// Asked for by blockOwnerDeletion where owner references are enforced.
		"mnemo.dev tenants/finalizers update",
	}
	spare := func() []string {
		w.recorder.mu.Lock()
		defer w.recorder.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(granted), func(right string) bool { return w.recorder.used[right] })
	}
	// Events are sent behind.
	for started := time.Now(); len(spare()) > len(expected) && time.Since(started) < 10*time.Second; {
		isGone(t, w.Client, tn)
	}
	found := spare()
	slices.Sort(found)
	slices.Sort(expected)
	if diff := cmp.Diff(expected, found); diff != "" {
		t.Errorf("rights that are not used (-expected +spare):\n%s", diff)
	}
}
