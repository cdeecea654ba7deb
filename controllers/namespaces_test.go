package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// setupNamespaced returns an env whose operator has the rights of config/rbac-namespaced, granted in another namespace. Those
// of the namespace with the Tenants are granted separately.
func setupNamespaced(t *testing.T) (tenants, operator *env) {
	t.Helper()
	operator = setupRun(t)
	operator.grant(t)
	operator.user = "system:serviceaccount:" + operator.ns + ":mnemo-operator"
	return &env{Client: operator.Client, store: operator.store, ns: newNamespace(t, operator.Client)}, operator
}

// deleteNamespace deletes the namespace with the Tenant acme and waits until the operator has no rights to Secrets in it.
func (e *env) deleteNamespace(t *testing.T) *corev1.Namespace {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	e.mustDelete(t, ns)
	eventually(t, func() bool {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: tenantsRole}}
		return isGone(t, e.Client, binding) && !e.tenant(t).DeletionTimestamp.IsZero()
	})
	return ns
}

// runDeletedNamespace: Kubernetes deletes the RoleBinding of a namespace before its Tenants are finalized. The operator
// finalizes them without it, even if it starts later, and serves the other namespaces.
func runDeletedNamespace(t *testing.T) {
	for name, restart := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			e, operator := setupNamespaced(t)
			operator.grantTenants(t, e.ns)
			config := controllers.Config{Namespaces: []string{e.ns}, Resync: time.Hour, Poll: 20 * time.Millisecond}
			stop := operator.run(t, config)
			tn := e.newTenant("alice")
			tn.Spec.DeletionPolicy = v1alpha1.Delete
			e.mustCreate(t, tn)
			e.eventuallyReady(t)
			e.store.fill(e.id(t), 3, 1) // purged by Work
			id := e.id(t)
			if restart {
				stop()
			}
			ns := e.deleteNamespace(t)
			if restart {
				operator.run(t, config)
			}
			eventually(t, func() bool {
				e.store.work()
				return isGone(t, e.Client, ns)
			})
			expectEqual(t, "valid tokens", len(e.store.valid(id, "alice")), 0)
			if _, stored := e.store.spec(id); stored {
				t.Error("the stored tenant was not purged")
			}
			operator.mustCreate(t, operator.newTenant("bob"))
			operator.eventuallyReady(t)
		})
	}
}

// runForbiddenNamespace: a watched namespace in which the operator has no rights yet does not stop it in the others.
func runForbiddenNamespace(t *testing.T) {
	e, operator := setupNamespaced(t)
	operator.run(t, controllers.Config{Namespaces: []string{e.ns, "missing-" + e.ns}, Resync: time.Hour})
	operator.mustCreate(t, operator.newTenant("bob"))
	operator.eventuallyReady(t)

	operator.grantTenants(t, e.ns)
	e.mustCreate(t, e.newTenant("alice"))
	e.eventuallyReady(t)
	changed := time.Time{}
	eventually(t, func() bool { // the Secrets are watched
		secret := e.secret(t, "acme-alice-access")
		switch {
		case changed.IsZero(), time.Since(changed) > time.Second: // the last change may precede the watch
			changed = time.Now()
			secret.Labels[v1alpha1.LabelUser] = "changed-" + changed.Format("150405.000")
			if err := e.Update(t.Context(), secret); err != nil && !apierrors.IsConflict(err) {
				t.Fatalf("change Secret: %v", err)
			}
			return false
		}
		return secret.Labels[v1alpha1.LabelUser] == "alice"
	})
}

// failLists answers lists of a resource in a namespace with an error.
type failLists struct {
	next     http.RoundTripper
	resource string
	failed   chan struct{}
}

func (f failLists) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, f.resource) && req.Method == http.MethodGet {
		select {
		case f.failed <- struct{}{}:
		default:
		}
		return nil, errors.New("connection reset by a test")
	}
	return f.next.RoundTrip(req)
}

// startUnsynced starts an operator that cannot list Secrets, and waits until it serves its probes.
func startUnsynced(ctx context.Context, t *testing.T, e *env, timeout time.Duration) (done chan error, ready func() int) {
	t.Helper()
	restConfig, failed := rest.CopyConfig(kubeConfig), make(chan struct{}, 1)
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return failLists{next, "namespaces/" + e.ns + "/secrets", failed}
	})
	config := controllers.Config{
		URL: apiURL, Namespaces: []string{e.ns}, HealthAddress: testkit.FreeAddress(t), SyncTimeout: timeout, Logger: slog.New(slog.DiscardHandler),
	}
	done = make(chan error, 1)
	go func() { done <- controllers.Run(ctx, restConfig, config, e.store.all()) }()
	<-failed
	return done, func() int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+config.HealthAddress+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
}

// runUnsynced: the operator is not ready, and can be stopped.
func runUnsynced(t *testing.T) {
	e := setupRun(t)
	ctx, stop := context.WithCancel(t.Context())
	done, ready := startUnsynced(ctx, t, e, time.Hour)
	var status int
	eventually(t, func() bool {
		status = ready()
		return status != 0
	})
	expectEqual(t, "status of /readyz", status, http.StatusInternalServerError)
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		t.Error("the operator does not stop")
	}
}

func runNeverSynced(t *testing.T) {
	e := setupRun(t)
	done, _ := startUnsynced(t.Context(), t, e, 100*time.Millisecond)
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "namespace "+e.ns) {
			t.Errorf("Run: got error %v, want one that names the namespace", err)
		}
	case <-time.After(patience):
		t.Error("the operator waits forever")
	}
}
