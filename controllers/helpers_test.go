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
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

const apiURL = "https://mnemo.test"

var errAway = fault.New(fault.Unavailable, "PostgreSQL is away")

// world is a namespace of the real cluster, the stores in memory, and a
// reconciler between them that a test drives by hand.
type world struct {
	client.Client
	ns         string
	fake       *tenanttest.Fake
	events     *events.FakeRecorder
	reconciler *controllers.TenantReconciler
	// user is whom an operator of run acts as, the one of config/rbac when
	// empty; recorder is what it asked for.
	user     string
	recorder *recorder
	// secretWrite, when set, is asked before and after each real write of a
	// Secret and may fail it.
	secretWrite func(when string) error
	// blind makes every list come out empty, as of a cache that has lost all.
	blind bool
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{Client: cluster(t), fake: tenanttest.NewFake(), events: events.NewFakeRecorder(1000)}
	w.ns = newNamespace(t, w.Client)
	w.use(t, controllers.Config{})
	return w
}

// use makes the reconciler anew, with the config and what every test has of it.
func (w *world) use(t *testing.T, config controllers.Config) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	config.URL, config.Cluster, config.Resync = apiURL, cmp.Or(config.Cluster, "cluster-1"), time.Minute
	c := interceptor.NewClient(cluster(t), interceptor.Funcs{
		Create: w.interceptCreate, Update: w.interceptUpdate, List: w.interceptList,
	})
	w.reconciler = controllers.NewTenantReconciler(c, c, w.events, config, stores(w.fake))
}

// stores are all the fake.
func stores(f *tenanttest.Fake) controllers.Stores {
	return controllers.Stores{Tenants: f, Tokens: f, Records: f, Partitions: f}
}

func (w *world) interceptCreate(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	options := client.CreateOptions{}
	options.ApplyOptions(opts)
	return w.intercept(o, options.DryRun, func() error { return c.Create(ctx, o, opts...) })
}

func (w *world) interceptUpdate(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	options := client.UpdateOptions{}
	options.ApplyOptions(opts)
	return w.intercept(o, options.DryRun, func() error { return c.Update(ctx, o, opts...) })
}

func (w *world) interceptList(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	if w.blind {
		return nil
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	options.FieldSelector = nil // only a cache has indexes
	return c.List(ctx, list, &options)
}

func (w *world) intercept(o client.Object, dryRun []string, write func() error) error {
	if _, secret := o.(*corev1.Secret); !secret || len(dryRun) > 0 || w.secretWrite == nil {
		return write()
	}
	if err := w.secretWrite("before"); err != nil {
		return err
	}
	return errors.Join(write(), w.secretWrite("after"))
}

// newNamespace makes one that is gone after the test, Tenants included.
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

// newTenant returns one named acme with the users.
func (w *world) newTenant(users ...string) *v1alpha1.Tenant {
	tn := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "acme"}}
	for _, name := range users {
		tn.Spec.Users = append(tn.Spec.Users, v1alpha1.TenantUser{Name: name})
	}
	return tn
}

func (w *world) mustCreate(t *testing.T, o client.Object) {
	t.Helper()
	if err := w.Create(t.Context(), o); err != nil {
		t.Fatalf("create %s: %v", o.GetName(), err)
	}
}

// mustUpdate changes the tenant acme as a person would.
func (w *world) mustUpdate(t *testing.T, change func(*v1alpha1.Tenant)) {
	t.Helper()
	tn := w.tenant(t)
	change(tn)
	if err := w.Update(t.Context(), tn); err != nil {
		t.Fatalf("update tenant: %v", err)
	}
}

func (w *world) mustDelete(t *testing.T, o client.Object) {
	t.Helper()
	if err := w.Delete(t.Context(), o); err != nil {
		t.Fatalf("delete %s: %v", o.GetName(), err)
	}
}

func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.ns, Name: "acme"}})
}

// expectReconciled reconciles once without an error.
func (w *world) expectReconciled(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := w.reconcile(t)
	if err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// expectReady creates the tenant, reconciles it and returns it Ready.
func (w *world) expectReady(t *testing.T, tn *v1alpha1.Tenant) *v1alpha1.Tenant {
	t.Helper()
	w.mustCreate(t, tn)
	w.expectReconciled(t)
	w.expectCondition(t, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	return w.tenant(t)
}

func (w *world) tenant(t *testing.T) *v1alpha1.Tenant {
	t.Helper()
	tn := &v1alpha1.Tenant{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "acme"}, tn); err != nil {
		t.Fatalf("get tenant: %v", err)
	}
	return tn
}

func (w *world) isReady(t *testing.T) bool {
	t.Helper()
	return meta.IsStatusConditionTrue(w.tenant(t).Status.Conditions, v1alpha1.Ready)
}

func (w *world) id(t *testing.T) tenant.ID { t.Helper(); return tenant.ID(w.tenant(t).UID) }

func (w *world) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, s); err != nil {
		t.Fatalf("get Secret: %v", err)
	}
	return s
}

// expectMissing checks that an object is not there.
func (w *world) expectMissing(t *testing.T, o client.Object, name string) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, o); !apierrors.IsNotFound(err) {
		t.Fatalf("%T %s: %v, want it not to be there", o, name, err)
	}
}

func expectEqual[T any](t *testing.T, what string, got, want T, opts ...gocmp.Option) {
	t.Helper()
	if diff := gocmp.Diff(want, got, opts...); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// expectCondition checks a condition; message is a part of its.
func (w *world) expectCondition(t *testing.T, name string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	tn := w.tenant(t)
	c := meta.FindStatusCondition(tn.Status.Conditions, name)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		t.Fatalf("condition %s is %+v, want %s, %s and %q in the message", name, c, status, reason, message)
	}
	if c.ObservedGeneration != tn.Generation {
		t.Fatalf("condition %s is of generation %d, want %d", name, c.ObservedGeneration, tn.Generation)
	}
}

// expectNoCondition checks that a condition is absent.
func (w *world) expectNoCondition(t *testing.T, conditionType string) {
	t.Helper()
	if c := meta.FindStatusCondition(w.tenant(t).Status.Conditions, conditionType); c != nil {
		t.Fatalf("condition %s is %+v, want none", conditionType, c)
	}
}

// expectEvents checks that exactly events that start so were recorded since the last call.
func (w *world) expectEvents(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for len(w.events.Events) > 0 {
		got = append(got, <-w.events.Events)
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Fatalf("events are %q, want %q", got, want)
	}
}

// expectOneToken checks that the Secret's token is the only valid one of the user.
func (w *world) expectOneToken(t *testing.T, user string) string {
	t.Helper()
	token := string(w.secret(t, "acme-"+user+"-access").Data[v1alpha1.SecretToken])
	if !tenant.IsToken(token) {
		t.Fatal("the Secret holds no token")
	}
	expectEqual(t, "valid tokens", w.fake.Valid(w.id(t), user), []tenant.Hash{tenant.HashSecret(token)})
	return token
}

// versions returns the resourceVersions of all the tenant's objects.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{"tenant": w.tenant(t).ResourceVersion}
	var list corev1.SecretList
	if err := w.List(t.Context(), &list, client.InNamespace(w.ns)); err != nil {
		t.Fatalf("list Secrets: %v", err)
	}
	for i := range list.Items {
		versions[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return versions
}
