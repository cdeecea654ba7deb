package controllers_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// run starts the operator for the namespace, and those in config, with the service account of
// config/rbac, so that missing rights fail the test. It ends with the test, or when the returned
// function is called.
func (e *env) run(t *testing.T, config controllers.Config) (stop func()) {
	t.Helper()
	restConfig := rest.CopyConfig(kubeConfig)
	restConfig.Impersonate.UserName = cmp.Or(e.user, "system:serviceaccount:mnemo-system:mnemo-operator")
	e.recorder = &recorder{used: map[string]bool{}, refused: map[string]bool{}}
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		e.recorder.next = next
		return e.recorder
	})
	config.URL, config.Namespaces = apiURL, append([]string{e.ns}, config.Namespaces...)
	config.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- controllers.Run(ctx, restConfig, config, e.store.all()) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func setupRun(t *testing.T) *env {
	t.Helper()
	e := &env{Client: cluster(t), store: newStore(t)}
	e.ns = newNamespace(t, e.Client)
	return e
}

// eventually polls until a condition holds.
func eventually(t *testing.T, met func() bool) {
	t.Helper()
	tick, deadline := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the condition does not hold after %v", patience)
		}
	}
}

func isGone(t *testing.T, c client.Client, o client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
}

func (e *env) eventuallyReady(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		return meta.IsStatusConditionTrue(e.tenant(t).Status.Conditions, v1alpha1.Ready)
	})
}

// TestRun runs complete operators, one at a time: metrics and loggers belong to the
// process.
func TestRun(t *testing.T) { //nolint:paralleltest // see above
	t.Run("reconciles changes", runFollows)
	t.Run("needs exactly its rights", runRights)
	t.Run("does not touch foreign Secrets", runForeign)
	t.Run("resyncs", runResyncs)
	t.Run("reconciles only its shard", runShard)
	t.Run("reconciles its shard with rights in its namespace only", runShardRights)
	t.Run("refills a lost collection before the resync", runLostCollection)
	t.Run("finalizes Tenants of a deleted namespace", runNamespace)
	t.Run("finalizes Tenants of a deleted namespace with rights in its namespaces only", runDeletedNamespace)
	t.Run("reconciles a namespace once it has rights in it", runForbiddenNamespace)
	t.Run("records a long event", runLongEvent)
	t.Run("is not ready before the caches have synced", runUnsynced)
	t.Run("fails if the caches do not sync", runNeverSynced)
}

func runFollows(t *testing.T) {
	e, changes := setupRun(t), make(chan tenant.ID)
	e.run(t, controllers.Config{Resync: time.Hour, Changes: changes, LeaderElection: true, LeaderElectionNamespace: "mnemo-system"})
	e.mustCreate(t, e.newTenant("alice"))
	e.eventuallyReady(t)
	id := e.id(t)
	secret := e.secret(t, "acme-alice-access")

	e.mustDelete(t, secret)
	eventually(t, func() bool {
		again := &corev1.Secret{}
		err := e.Get(t.Context(), client.ObjectKeyFromObject(secret), again)
		return err == nil && string(again.Data["token"]) != string(secret.Data["token"])
	})
	eventually(t, func() bool { return e.tenant(t).Status.Users[0].Issued == 2 })
	e.expectOneToken(t, "alice")

	e.store.fill(id, 5, 0)
	changes <- id
	eventually(t, func() bool { return e.tenant(t).Status.Usage.Memories.Used == 5 })

	// A Secret without labels is not cached, but the Tenant still owns it.
	secret = e.secret(t, "acme-alice-access")
	secret.Labels = nil
	if err := e.Update(t.Context(), secret); err != nil {
		t.Fatalf("remove labels: %v", err)
	}
	eventually(t, func() bool { return len(e.secret(t, "acme-alice-access").Labels) == 3 })
	e.expectOneToken(t, "alice")

	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	eventually(t, func() bool { return e.tenant(t).Status.Users[0].TokenGeneration == 2 })
	e.expectOneToken(t, "alice")
	expectEqual(t, "issued", e.tenant(t).Status.Users[0].Issued, int64(3)) // no more than was asked for

	tn := e.tenant(t)
	e.mustDelete(t, tn)
	eventually(t, func() bool { return isGone(t, e.Client, tn) })
}

// runForeign: a foreign Secret that is not cached is found when the user's first
// Secret is created, and no unpublished token stays valid.
func runForeign(t *testing.T) {
	e := setupRun(t)
	foreign := &corev1.Secret{Data: map[string][]byte{"token": []byte("theirs")}}
	foreign.Namespace, foreign.Name = e.ns, "acme-alice-access"
	e.mustCreate(t, foreign)
	e.run(t, controllers.Config{Resync: 50 * time.Millisecond})
	e.mustCreate(t, e.newTenant("alice", "bob"))
	eventually(t, func() bool {
		c := meta.FindStatusCondition(e.tenant(t).Status.Conditions, v1alpha1.TokensReady)
		return c != nil && c.Reason == v1alpha1.ReasonSecretConflict
	})
	e.expectOneToken(t, "bob")
	applied := e.store.counts()["Apply"]
	eventually(t, func() bool { return e.store.counts()["Apply"] > applied+3 })
	expectEqual(t, "valid tokens that were never published", len(e.store.valid(e.id(t), "alice")), 0)
	expectEqual(t, "installed", e.store.counts()["Install"], 2) // no more for each try
	expectEqual(t, "the foreign Secret", e.secret(t, foreign.Name).Data, foreign.Data)
}

func runResyncs(t *testing.T) {
	e := setupRun(t)
	e.run(t, controllers.Config{Resync: 50 * time.Millisecond})
	e.mustCreate(t, e.newTenant("alice"))
	e.eventuallyReady(t)
	e.store.fill(e.id(t), 5, 0)
	placement := placementOf(e.tenant(t))
	e.store.index.LosePartition(placement)
	eventually(t, func() bool { return e.store.index.HasPartition(placement) && e.store.refills(e.id(t)) })
	e.store.work()

	resyncs := func(n int) {
		applied := e.store.counts()["Apply"]
		eventually(t, func() bool { return e.store.counts()["Apply"] > applied+n })
	}
	eventually(t, func() bool { return e.hasEvent(t, "PartitionLost") }) // the last one, which is sent behind
	resyncs(1)
	versions, written := e.versions(t), e.recorder.written()
	resyncs(5)
	expectEqual(t, "versions with nothing to do", e.versions(t), versions)
	expectEqual(t, "writes with nothing to do", e.recorder.written(), written)
}

// runLostCollection: all partitions of a collection are lost, and only one Tenant of it
// is checked.
func runLostCollection(t *testing.T) {
	e := setupRun(t)
	e.run(t, controllers.Config{Resync: time.Hour, CheckIndex: 50 * time.Millisecond})
	var placements []placement.Location
	for i := range 5 {
		tn := e.newTenant("alice")
		tn.Name = fmt.Sprint("tenant-", i)
		e.mustCreate(t, tn)
		eventually(t, func() bool {
			if err := e.Get(t.Context(), client.ObjectKeyFromObject(tn), tn); err != nil {
				t.Fatal(err)
			}
			return meta.IsStatusConditionTrue(tn.Status.Conditions, v1alpha1.Ready)
		})
		placements = append(placements, placementOf(tn))
	}
	for _, p := range placements {
		e.store.index.LosePartition(p)
	}
	eventually(t, func() bool {
		return !slices.ContainsFunc(placements, func(p placement.Location) bool { return !e.store.index.HasPartition(p) })
	})
}

// runShard: an operator with a label selector leaves the Tenants of other shards alone,
// including one that moves to another shard, whose Tenant disappears from the cache.
func runShard(t *testing.T) {
	e := setupRun(t)
	selector, err := labels.Parse("mnemo.dev/shard=a")
	if err != nil {
		t.Fatal(err)
	}
	e.run(t, controllers.Config{Selector: selector, Resync: time.Hour, Sweep: 20 * time.Millisecond, Cluster: "cluster-1"})
	other := e.newTenant("alice")
	other.Name, other.Labels = "other", map[string]string{"mnemo.dev/shard": "b"}
	e.mustCreate(t, other)
	// The other operator has stored it.
	spec := otherSpec(e.ns, "other")
	spec.ID, spec.DeletionPolicy = tenant.ID(other.UID), tenant.Delete
	if _, err := e.store.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	ours := e.newTenant("alice")
	ours.Labels = map[string]string{"mnemo.dev/shard": "a"}
	e.mustCreate(t, ours)
	e.eventuallyReady(t)
	e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Labels["mnemo.dev/shard"] = "b" })
	sweeps := e.store.counts()["Records"]
	eventually(t, func() bool { return e.store.counts()["Records"] > sweeps+5 })
	for _, tn := range []*v1alpha1.Tenant{other, ours} {
		expectEqual(t, "stored", e.isStored(t, tenant.ID(tn.UID)), true)
	}
	e.expectOneToken(t, "alice")
	if err := e.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Fatal(err)
	}
	expectEqual(t, "finalizers of the other Tenant", len(other.Finalizers), 0)
}

// isStored reports whether the tenant is active in the store.
func (e *env) isStored(t *testing.T, id tenant.ID) bool {
	t.Helper()
	records, err := e.store.Records(t.Context(), tenant.RecordsOf{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(records, func(r tenant.Record) bool { return r.Resource == id && r.State == tenant.Active })
}

// hasEvent reports whether an event with the reason exists.
func (e *env) hasEvent(t *testing.T, reason string) bool {
	t.Helper()
	var list eventsv1.EventList
	if err := e.List(t.Context(), &list, client.InNamespace(e.ns)); err != nil {
		t.Fatalf("list events: %v", err)
	}
	return slices.ContainsFunc(list.Items, func(event eventsv1.Event) bool { return event.Reason == reason })
}

func runNamespace(t *testing.T) {
	e := setupRun(t)
	e.run(t, controllers.Config{Resync: 50 * time.Millisecond, Poll: 20 * time.Millisecond})
	tn := e.newTenant("alice", "bob")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	e.mustCreate(t, tn)
	e.eventuallyReady(t)
	tn = e.tenant(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}
	e.mustDelete(t, ns)
	eventually(t, func() bool {
		e.store.work()
		return isGone(t, e.Client, ns)
	})
	if e.store.index.HasPartition(placementOf(tn)) {
		t.Error("the partition was not dropped")
	}
	if _, there := e.store.spec(tenant.ID(tn.UID)); there {
		t.Error("the stored tenant was not purged")
	}
}

// runLongEvent: the API server rejects an event with a note of more than 1,024 bytes.
func runLongEvent(t *testing.T) {
	e := setupRun(t)
	e.run(t, controllers.Config{Resync: time.Hour})
	tn := e.newTenant("alice")
	tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test"}
	for i := range 5 {
		tn.Spec.OIDC.EmailDomains = append(tn.Spec.OIDC.EmailDomains, fmt.Sprintf("%s%d.test", strings.Repeat("a", 240), i))
	}
	e.mustCreate(t, tn)
	e.eventuallyReady(t)
	eventually(t, func() bool { return e.hasEvent(t, v1alpha1.ReasonDomainNotAssigned) })
}
