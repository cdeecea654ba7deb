package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// +kubebuilder:rbac:groups=mnemo.dev,resources=tenants,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=mnemo.dev,resources=tenants/status,verbs=patch
// +kubebuilder:rbac:groups=mnemo.dev,resources=tenants/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// TenantReconciler reconciles Tenants with the stores, the index and Secrets.
type TenantReconciler struct {
	client     client.Client // may be cached
	live       client.Reader // not cached
	recorder   events.EventRecorder
	config     Config
	store      tenant.Store
	tokens     tenant.TokenStore
	records    tenant.RecordStore
	webhooks   webhook.DeclaredStore
	partitions placement.Partitions
	metrics    *metrics
	rounds     *rounds
	loading    *loading
	changes    tenant.ChangeReader // optional
	lost       chan string         // collections with a lost partition
}

// Stores are the stores and the index that hold tenants.
type Stores struct {
	Tenants    tenant.Store
	Tokens     tenant.TokenStore
	Records    tenant.RecordStore
	Webhooks   webhook.DeclaredStore
	Partitions placement.Partitions
	// Cells and CellPinger are required with Config.CellsSecret.
	Cells      placement.CellStore
	CellPinger CellPinger
	// Changes finds tenants that changed in the store, which are then reconciled before
	// the next resync. Optional.
	Changes tenant.ChangeReader
}

// NewTenantReconciler returns a reconciler. live must bypass c's cache, if it
// has one; config.Cluster must be set.
func NewTenantReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, config Config, s Stores) *TenantReconciler {
	config = config.withDefaults()
	return &TenantReconciler{
		client: c, live: live, recorder: recorder, config: config,
		store: s.Tenants, tokens: s.Tokens, records: s.Records, webhooks: s.Webhooks, partitions: s.Partitions,
		metrics: newMetrics(), rounds: &rounds{failed: map[types.UID]map[string]error{}}, loading: &loading{begun: map[types.UID]time.Time{}},
		changes: s.Changes, lost: make(chan string, 1),
	}
}

// pass is one reconciliation of one Tenant.
type pass struct {
	tenant *v1alpha1.Tenant
	stored tenant.Tenant // set by syncStore
	events []event       // recorded at the end
	// unfinished means that work continues elsewhere and the Tenant is to be
	// reconciled again soon.
	unfinished bool
	// continues means that the next pass changes the remaining users.
	continues bool
	progress  string // why Reconciling is True; "" for the reason of IndexReady
}

// errStalled ends a step that cannot succeed until something else changes. Its
// condition says what. The next attempt follows after retryStalled.
var errStalled = errors.New("stalled")

var (
	// requeueSoon leaves the cache a moment to observe a concurrent change.
	requeueSoon = ctrl.Result{RequeueAfter: 100 * time.Millisecond}
	// requeueContinued leaves the cache a moment to observe the changed users. Other
	// Tenants come first.
	requeueContinued = ctrl.Result{RequeueAfter: 50 * time.Millisecond, Priority: new(-1)}
)

type step struct {
	name string
	do   func(context.Context, *pass) error
}

// Reconcile moves the observed state of a Tenant toward the desired state, in
// steps, and patches the status once at the end.
func (r *TenantReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	t := &v1alpha1.Tenant{}
	if err := r.client.Get(ctx, req.NamespacedName, t); apierrors.IsNotFound(err) {
		_, err := r.sweepName(ctx, req.NamespacedName)
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, err
	}
	paused, deleted := t.Annotations[v1alpha1.AnnotationPaused] == "true", !t.DeletionTimestamp.IsZero()
	if !paused && !deleted {
		// Before anything is created in a store, so that nothing can be orphaned.
		if err := r.addFinalizer(ctx, t); isConflict(err) {
			return requeueSoon, nil
		} else if err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	before, p := t.DeepCopy(), &pass{tenant: t}
	defer func() {
		conflict, patchErr := r.patchStatus(ctx, before, p)
		if err = errors.Join(err, patchErr); err == nil && conflict {
			result = requeueSoon
		}
	}()
	if paused {
		p.setCondition(v1alpha1.Paused, true, v1alpha1.ReasonPaused,
			"nothing is reconciled, including deletion, until annotation %s is removed", v1alpha1.AnnotationPaused)
		return ctrl.Result{}, nil
	}
	p.removeCondition(v1alpha1.Paused)
	if deleted {
		r.rounds.end(t.UID)
		r.loading.forget(t.UID)
		return r.reconcileDeletion(ctx, p)
	}
	return r.reconcileSteps(ctx, p)
}

// reconcileSteps runs the steps. All depend on the first. The others also run if
// one of them fails, because a tenant without an index still accepts writes and
// needs its tokens.
func (r *TenantReconciler) reconcileSteps(ctx context.Context, p *pass) (ctrl.Result, error) {
	err := r.run(ctx, p, step{"store", r.syncStore})
	if err == nil {
		// The index takes longest, and tokens do not depend on it.
		wait := r.runConcurrently(ctx, p, step{"partition", r.ensurePartition})
		for _, e := range []error{
			r.run(ctx, p, step{"tokens", r.ensureTokens}),
			r.run(ctx, p, step{"webhooks", r.ensureWebhooks}),
			wait(),
			r.run(ctx, p, step{"usage", r.refreshUsage}),
		} {
			if !errors.Is(e, errStalled) {
				err = errors.Join(err, e)
			}
		}
	}
	p.summarize()
	switch {
	case p.continues: // the last pass returns the errors
		return requeueContinued, nil
	case isConflict(err):
		return requeueSoon, nil
	case err != nil && !errors.Is(err, errStalled):
		return ctrl.Result{}, err
	}
	if p.unfinished {
		return requeueCheck(r.nextCheck(p)), nil
	}
	return ctrl.Result{RequeueAfter: r.nextPass(p)}, nil
}

// requeueCheck checks work that continues elsewhere, possibly for thousands of Tenants. Other
// Tenants come first.
func requeueCheck(after time.Duration) ctrl.Result {
	return ctrl.Result{RequeueAfter: after, Priority: new(-1)}
}

// nextCheck returns the time until the progress of unfinished work is checked, which grows with
// the time elapsed: it may take minutes or hours.
func (r *TenantReconciler) nextCheck(p *pass) time.Duration {
	wait := min(r.loading.elapsed(p.tenant)/5, r.config.Resync)
	if c := meta.FindStatusCondition(p.tenant.Status.Conditions, v1alpha1.IndexReady); c != nil && c.Status == metav1.ConditionTrue {
		// Migrating or Rebuilding. Reconciling may be older than the work.
		reconciling := meta.FindStatusCondition(p.tenant.Status.Conditions, v1alpha1.Reconciling)
		wait = min(time.Since(reconciling.LastTransitionTime.Time)/5, r.config.CheckIndex)
	}
	return max(r.config.Poll, wait)
}

// nextPass returns the time until the next regular reconciliation.
func (r *TenantReconciler) nextPass(p *pass) time.Duration {
	interval := r.config.Resync
	if p.isBlocked() {
		interval = min(interval, retryStalled)
	}
	// Jitter spreads the Tenants that an operator reconciled at its start.
	jitter := time.Duration(rand.Int64N(int64(interval)/5 + 1)) //nolint:gosec // no secret
	return interval - jitter/2
}

// retryStalled is the interval at which a Tenant is reconciled that waits for another
// object, which is not watched.
const retryStalled = time.Minute

// isBlocked reports whether the Tenant waits for a change of another object: a tenant
// that has its name or domain, or a Secret. The state of webhooks is read again as often.
func (p *pass) isBlocked() bool {
	return slices.ContainsFunc(p.tenant.Status.Conditions, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse &&
			(slices.Contains(readyConditions, c.Type) || c.Type == v1alpha1.OIDCReady || c.Type == v1alpha1.WebhooksReady)
	})
}

// run runs a step and records its duration.
func (r *TenantReconciler) run(ctx context.Context, p *pass, s step) error {
	start := time.Now()
	err := s.do(ctx, p)
	r.metrics.steps.WithLabelValues(s.name, outcome(err)).Observe(time.Since(start).Seconds())
	if err != nil && !errors.Is(err, errStalled) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return err
}

// runConcurrently runs a step on a copy of the pass. The function it returns
// waits for the step, merges its results into the pass and re-raises a panic.
func (r *TenantReconciler) runConcurrently(ctx context.Context, p *pass, s step) (wait func() error) {
	other := &pass{tenant: p.tenant.DeepCopy(), stored: p.stored}
	var (
		done     = make(chan struct{})
		err      error
		panicked any
	)
	go func() {
		defer close(done)
		defer func() {
			if panicked = recover(); panicked != nil {
				panicked = fmt.Sprintf("%v\n%s", panicked, debug.Stack())
			}
		}()
		err = r.run(ctx, other, s)
	}()
	return func() error {
		<-done
		if panicked != nil {
			panic(panicked)
		}
		p.mergePartition(other)
		return err
	}
}

func (r *TenantReconciler) addFinalizer(ctx context.Context, t *v1alpha1.Tenant) error {
	before := t.DeepCopy()
	if !controllerutil.AddFinalizer(t, v1alpha1.Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, t, patch); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}
