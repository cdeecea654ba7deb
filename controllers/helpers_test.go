package controllers_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const apiURL = "https://mnemo.test"

var errPostgresUnavailable = fault.New(fault.Unavailable, "PostgreSQL is unavailable")

// env is a namespace of a real cluster, a real database, and a reconciler that a
// test calls.
type env struct {
	client.Client
	ns         string
	store      *store
	events     *events.FakeRecorder
	reconciler *controllers.TenantReconciler
	stores     controllers.Stores // by default the store
	// user is the user of an operator started by run, by default the service account
	// of config/rbac. recorder records its requests.
	user     string
	recorder *recorder
	// secretWrite, if set, is called before and after each write of a Secret and
	// can fail it.
	secretWrite func(when string) error
	// blind empties every list, like a cache that lost its content.
	blind bool
}

func setup(t *testing.T) *env {
	t.Helper()
	e := &env{Client: cluster(t), store: newStore(t), events: events.NewFakeRecorder(1000)}
	e.ns = newNamespace(t, e.Client)
	e.use(t, controllers.Config{})
	return e
}

// use replaces the reconciler by one with the config and the test defaults.
func (e *env) use(t *testing.T, config controllers.Config) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	config.URL, config.Cluster, config.Resync = apiURL, cmp.Or(config.Cluster, "cluster-1"), time.Minute
	c := interceptor.NewClient(cluster(t), interceptor.Funcs{
		Create: e.interceptCreate, Update: e.interceptUpdate, List: e.interceptList,
	})
	s := e.stores
	if s == (controllers.Stores{}) {
		s = e.store.all()
	}
	e.reconciler = controllers.NewTenantReconciler(c, c, e.events, config, s)
}

func (e *env) interceptCreate(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	options := client.CreateOptions{}
	options.ApplyOptions(opts)
	return e.intercept(o, options.DryRun, func() error { return c.Create(ctx, o, opts...) })
}

func (e *env) interceptUpdate(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	options := client.UpdateOptions{}
	options.ApplyOptions(opts)
	return e.intercept(o, options.DryRun, func() error { return c.Update(ctx, o, opts...) })
}

func (e *env) interceptList(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	if e.blind {
		return nil
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	options.FieldSelector = nil // only a cache has indexes
	return c.List(ctx, list, &options)
}

func (e *env) intercept(o client.Object, dryRun []string, write func() error) error {
	if _, secret := o.(*corev1.Secret); !secret || len(dryRun) > 0 || e.secretWrite == nil {
		return write()
	}
	if err := e.secretWrite("before"); err != nil {
		return err
	}
	return errors.Join(write(), e.secretWrite("after"))
}

// newNamespace creates a namespace that is deleted with its Tenants after the test.
func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenants-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's has ended
		var list v1alpha1.TenantList
		if err := c.List(ctx, &list, client.InNamespace(ns.Name)); err != nil {
			t.Errorf("list tenants: %v", err)
		}
		for i := range list.Items {
			before := list.Items[i].DeepCopy()
			list.Items[i].Finalizers = nil
			if err := c.Patch(ctx, &list.Items[i], client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
				t.Errorf("release tenant: %v", err)
			}
		}
		if err := c.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	return ns.Name
}

// newTenant returns a Tenant named acme with the users.
func (e *env) newTenant(users ...string) *v1alpha1.Tenant {
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "acme"}}
	for _, name := range users {
		tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: name})
	}
	return tn
}

func (e *env) mustCreate(t *testing.T, o client.Object) {
	t.Helper()
	if err := e.Create(t.Context(), o); err != nil {
		t.Fatalf("create %s: %v", o.GetName(), err)
	}
}

// mustUpdate updates the Tenant acme.
func (e *env) mustUpdate(t *testing.T, change func(*v1alpha1.Tenant)) {
	t.Helper()
	tn := e.tenant(t)
	change(tn)
	if err := e.Update(t.Context(), tn); err != nil {
		t.Fatalf("update tenant: %v", err)
	}
}

func (e *env) mustDelete(t *testing.T, o client.Object) {
	t.Helper()
	if err := e.Delete(t.Context(), o); err != nil {
		t.Fatalf("delete %s: %v", o.GetName(), err)
	}
}

func (e *env) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: e.ns, Name: "acme"}})
}

// expectReconciled reconciles once without an error.
func (e *env) expectReconciled(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := e.reconcile(t)
	if err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// settle reconciles until a pass does not request another one at once, and returns
// the number of passes and the error of the last one.
func (e *env) settle(t *testing.T) (passes int, err error) {
	t.Helper()
	for passes = 1; ; passes++ {
		result, err := e.reconcile(t)
		if err != nil || result.RequeueAfter > time.Second {
			return passes, err
		}
	}
}

// expectReady creates the tenant, reconciles it and returns it Ready.
func (e *env) expectReady(t *testing.T, tn *v1alpha1.Tenant) *v1alpha1.Tenant {
	t.Helper()
	e.mustCreate(t, tn)
	if _, err := e.settle(t); err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	e.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	return e.tenant(t)
}

func (e *env) tenant(t *testing.T) *v1alpha1.Tenant {
	t.Helper()
	tn := &v1alpha1.Tenant{}
	if err := e.Get(t.Context(), client.ObjectKey{Namespace: e.ns, Name: "acme"}, tn); err != nil {
		t.Fatalf("get tenant: %v", err)
	}
	return tn
}

func (e *env) isReady(t *testing.T) bool {
	t.Helper()
	return meta.IsStatusConditionTrue(e.tenant(t).Status.Conditions, v1alpha1.Ready)
}

func (e *env) id(t *testing.T) tenant.ID { t.Helper(); return tenant.ID(e.tenant(t).UID) }

func (e *env) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := e.Get(t.Context(), client.ObjectKey{Namespace: e.ns, Name: name}, s); err != nil {
		t.Fatalf("get Secret: %v", err)
	}
	return s
}

// expectMissing checks that an object does not exist.
func (e *env) expectMissing(t *testing.T, o client.Object, name string) {
	t.Helper()
	if err := e.Get(t.Context(), client.ObjectKey{Namespace: e.ns, Name: name}, o); !apierrors.IsNotFound(err) {
		t.Fatalf("get %T %s: got error %v, want NotFound", o, name, err)
	}
}

func expectEqual[T any](t *testing.T, what string, got, want T, opts ...gocmp.Option) {
	t.Helper()
	if diff := gocmp.Diff(want, got, opts...); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// expectCondition checks a condition, whose message must contain the text.
func (e *env) expectCondition(t *testing.T, name string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	tn := e.tenant(t)
	c := meta.FindStatusCondition(tn.Status.Conditions, name)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		t.Fatalf("condition %s is %+v, want %s, %s and %q in the message", name, c, status, reason, message)
	}
	if c.ObservedGeneration != tn.Generation {
		t.Fatalf("condition %s has observedGeneration %d, want %d", name, c.ObservedGeneration, tn.Generation)
	}
}

// expectNoCondition checks that a condition is absent.
func (e *env) expectNoCondition(t *testing.T, conditionType string) {
	t.Helper()
	if c := meta.FindStatusCondition(e.tenant(t).Status.Conditions, conditionType); c != nil {
		t.Fatalf("condition %s is %+v, want none", conditionType, c)
	}
}

// backdateConditions moves the transitions of all conditions into the past.
func (e *env) backdateConditions(t *testing.T, age time.Duration) {
	t.Helper()
	tn := e.tenant(t)
	for i := range tn.Status.Conditions {
		tn.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-age))
	}
	if err := e.Status().Update(t.Context(), tn); err != nil {
		t.Fatal(err)
	}
}

// expectNoWrites fails if another reconciliation in the same situation writes
// the Tenant. The conditions are backdated because two transitions within a
// second look the same.
func (e *env) expectNoWrites(t *testing.T) {
	t.Helper()
	e.backdateConditions(t, time.Minute)
	before := e.tenant(t).ResourceVersion
	_, _ = e.reconcile(t)
	expectEqual(t, "resourceVersion", e.tenant(t).ResourceVersion, before)
}

// expectEvents checks that exactly events with these prefixes were recorded since
// the last call.
func (e *env) expectEvents(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for len(e.events.Events) > 0 {
		got = append(got, <-e.events.Events)
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Fatalf("events are %q, want %q", got, want)
	}
}

// expectOneToken checks that the Secret's token is the only valid one of the user.
func (e *env) expectOneToken(t *testing.T, user string) string {
	t.Helper()
	token := string(e.secret(t, "acme-"+user+"-access").Data[v1alpha1.SecretToken])
	if !tenant.IsToken(token) {
		t.Fatal("the Secret holds no token")
	}
	expectEqual(t, "valid tokens", e.store.valid(e.id(t), user), []tenant.Hash{tenant.HashSecret(token)})
	return token
}

// versions returns the resourceVersions of all the tenant's objects.
func (e *env) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{"tenant": e.tenant(t).ResourceVersion}
	var list corev1.SecretList
	if err := e.List(t.Context(), &list, client.InNamespace(e.ns)); err != nil {
		t.Fatalf("list Secrets: %v", err)
	}
	for i := range list.Items {
		versions[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return versions
}
