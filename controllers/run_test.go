package controllers_test

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// run starts the operator for one namespace, as the service account of
// config/rbac, so that what it may do is all it needs. It ends with the test.
func (w *world) run(t *testing.T, config controllers.Config) {
	t.Helper()
	restConfig := rest.CopyConfig(kubeConfig)
	restConfig.Impersonate.UserName = cmp.Or(w.user, "system:serviceaccount:mnemo-system:mnemo-operator")
	w.recorder = &recorder{used: map[string]bool{}, refused: map[string]bool{}}
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.recorder.next = next
		return w.recorder
	})
	config.URL, config.Namespaces = apiURL, []string{w.ns}
	config.Logger = slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- controllers.Run(ctx, restConfig, config, stores(w.fake)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func setupRun(t *testing.T) *world {
	t.Helper()
	w := &world{Client: cluster(t), fake: tenanttest.NewFake()}
	w.ns = newNamespace(t, w.Client)
	return w
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

func (w *world) eventuallyReady(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		return meta.IsStatusConditionTrue(w.tenant(t).Status.Conditions, v1alpha1.Ready)
	})
}

// TestRun lets the operator work by itself, in order: it owns metrics and
// loggers of the process, so that there is one at a time.
func TestRun(t *testing.T) { //nolint:paralleltest // see above
	t.Run("follows what changes", runFollows)
	t.Run("needs its rights and no more", runRights)
	t.Run("leaves others' Secrets alone", runForeign)
	t.Run("resyncs", runResyncs)
	t.Run("ends with its namespace", runNamespace)
}

func runFollows(t *testing.T) {
	w, changes := setupRun(t), make(chan tenant.ID)
	w.run(t, controllers.Config{Resync: time.Hour, Changes: changes, LeaderElection: true, LeaderElectionNamespace: "mnemo-system"})
	w.mustCreate(t, w.newTenant("alice"))
	w.eventuallyReady(t)
	id := w.id(t)
	secret := w.secret(t, "acme-alice-access")

	w.mustDelete(t, secret)
	eventually(t, func() bool {
		again := &corev1.Secret{}
		err := w.Get(t.Context(), client.ObjectKeyFromObject(secret), again)
		return err == nil && string(again.Data["token"]) != string(secret.Data["token"])
	})
	eventually(t, func() bool { return w.tenant(t).Status.Users[0].Issued == 2 })
	w.expectOneToken(t, "alice")

	w.fake.Fill(id, 5, 0)
	changes <- id
	eventually(t, func() bool { return w.tenant(t).Status.Usage.Memories.Used == 5 })

	// Out of the cache's sight, and still this Tenant's.
	secret = w.secret(t, "acme-alice-access")
	secret.Labels = nil
	if err := w.Update(t.Context(), secret); err != nil {
		t.Fatalf("strip labels: %v", err)
	}
	eventually(t, func() bool { return len(w.secret(t, "acme-alice-access").Labels) == 3 })
	w.expectOneToken(t, "alice")

	w.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 2 })
	eventually(t, func() bool { return w.tenant(t).Status.Users[0].TokenGeneration == 2 })
	w.expectOneToken(t, "alice")
	expectEqual(t, "issued", w.tenant(t).Status.Users[0].Issued, int64(3)) // no more than was asked for

	tn := w.tenant(t)
	w.mustDelete(t, tn)
	eventually(t, func() bool { return isGone(t, w.Client, tn) })
}

// runForeign: another's Secret that the cache does not hold is found when the
// user's first one is to be made, and no token is left that nobody was given.
func runForeign(t *testing.T) {
	w := setupRun(t)
	foreign := &corev1.Secret{Data: map[string][]byte{"token": []byte("theirs")}}
	foreign.Namespace, foreign.Name = w.ns, "acme-alice-access"
	w.mustCreate(t, foreign)
	w.run(t, controllers.Config{Resync: 50 * time.Millisecond})
	w.mustCreate(t, w.newTenant("alice", "bob"))
	eventually(t, func() bool {
		c := meta.FindStatusCondition(w.tenant(t).Status.Conditions, v1alpha1.TokensReady)
		return c != nil && c.Reason == v1alpha1.ReasonSecretConflict
	})
	w.expectOneToken(t, "bob")
	applied := w.fake.Calls()["Apply"]
	eventually(t, func() bool { return w.fake.Calls()["Apply"] > applied+3 })
	expectEqual(t, "valid tokens nobody was given", len(w.fake.Valid(w.id(t), "alice")), 0)
	expectEqual(t, "installed", w.fake.Calls()["Install"], 2) // no more for each try
	expectEqual(t, "the foreign Secret", w.secret(t, foreign.Name).Data, foreign.Data)
}

func runResyncs(t *testing.T) {
	w := setupRun(t)
	w.run(t, controllers.Config{Resync: 50 * time.Millisecond})
	w.mustCreate(t, w.newTenant("alice"))
	w.eventuallyReady(t)
	placement := placementOf(w.tenant(t))
	w.fake.TakeAway(placement)
	eventually(t, func() bool { return w.fake.HasPartition(placement) && w.fake.Reindexed(w.id(t)) > 0 })

	resyncs := func(n int) {
		applied := w.fake.Calls()["Apply"]
		eventually(t, func() bool { return w.fake.Calls()["Apply"] > applied+n })
	}
	eventually(t, func() bool { return w.hasEvent(t, "PartitionLost") }) // the last one, which is sent behind
	resyncs(1)
	versions, written := w.versions(t), w.recorder.written()
	resyncs(5)
	expectEqual(t, "versions with nothing to do", w.versions(t), versions)
	expectEqual(t, "writes with nothing to do", w.recorder.written(), written)
}

// hasEvent reports whether one with the reason is there.
func (w *world) hasEvent(t *testing.T, reason string) bool {
	t.Helper()
	var list eventsv1.EventList
	if err := w.List(t.Context(), &list, client.InNamespace(w.ns)); err != nil {
		t.Fatalf("list events: %v", err)
	}
	return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == reason })
}

func runNamespace(t *testing.T) {
	w := setupRun(t)
	w.run(t, controllers.Config{Resync: 50 * time.Millisecond, Poll: 20 * time.Millisecond})
	tn := w.newTenant("alice", "bob")
	tn.Spec.DeletionPolicy = v1alpha1.Delete
	w.mustCreate(t, tn)
	w.eventuallyReady(t)
	tn = w.tenant(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	w.mustDelete(t, ns)
	eventually(t, func() bool { return isGone(t, w.Client, ns) })
	if w.fake.HasPartition(placementOf(tn)) {
		t.Error("the partition is still there")
	}
	if _, there := w.fake.Spec(tenant.ID(tn.UID)); there {
		t.Error("the stored tenant is still there")
	}
}
