package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// +kubebuilder:rbac:groups=mnemo.dev,resources=tenants,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=mnemo.dev,resources=tenants/status,verbs=patch
// +kubebuilder:rbac:groups=mnemo.dev,resources=tenants/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// TenantReconciler makes the stores, the index and the Secrets be what Tenants say.
type TenantReconciler struct {
	client     client.Client // may answer from a cache
	live       client.Reader // asks the API server
	recorder   events.EventRecorder
	config     Config
	store      tenant.Store
	tokens     tenant.TokenStore
	records    tenant.RecordStore
	partitions tenant.Partitions
	metrics    *metrics
}

// Stores are what Tenants are made real in.
type Stores struct {
	Tenants    tenant.Store
	Tokens     tenant.TokenStore
	Records    tenant.RecordStore
	Partitions tenant.Partitions
}

// NewTenantReconciler makes a reconciler. live reads around c's cache, if it
// has one; config.Cluster must be set.
func NewTenantReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, config Config, s Stores) *TenantReconciler {
	config = config.withDefaults()
	return &TenantReconciler{
		client: c, live: live, recorder: recorder, config: config,
		store: s.Tenants, tokens: s.Tokens, records: s.Records, partitions: s.Partitions,
		metrics: newMetrics(),
	}
}

// pass is one reconciliation of one Tenant.
type pass struct {
	tenant *v1alpha1.Tenant
	stored tenant.Tenant // set by applyStore
	events []event       // recorded at its end
	// unfinished says that something goes on elsewhere that is worth another
	// look soon.
	unfinished bool
}

// errHeld ends a step whose condition says what a person has to do: trying
// again sooner than at the next resync is of no use.
var errHeld = errors.New("held")

// lookAgain gives the cache a moment to see what changed under our hands.
var lookAgain = ctrl.Result{RequeueAfter: 100 * time.Millisecond}

type step struct {
	name string
	do   func(context.Context, *pass) error
}

// Reconcile makes what is into what the Tenant says, in steps, and writes the
// status once at the end.
func (r *TenantReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	t := &v1alpha1.Tenant{}
	if err := r.client.Get(ctx, req.NamespacedName, t); apierrors.IsNotFound(err) {
		_, err := r.sweepName(ctx, req.NamespacedName)
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if t.Annotations[v1alpha1.AnnotationPaused] == "true" {
		return r.reconcilePaused(ctx, t)
	}
	deleted := !t.DeletionTimestamp.IsZero()
	if !deleted {
		// Before anything is made elsewhere, so that nothing is left behind.
		if err := r.addFinalizer(ctx, t); retried(err) {
			return lookAgain, nil
		} else if err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err) // it went at once: nothing was made of it
		}
	}
	before, p := t.DeepCopy(), &pass{tenant: t}
	meta.RemoveStatusCondition(&t.Status.Conditions, v1alpha1.Paused)
	defer func() {
		again, patchErr := r.patchStatus(ctx, before, p)
		if err = errors.Join(err, patchErr); err == nil && again {
			result = lookAgain
		}
	}()
	if deleted {
		return r.reconcileDeletion(ctx, p)
	}
	return r.reconcileSteps(ctx, p)
}

// reconcilePaused does nothing but say so.
func (r *TenantReconciler) reconcilePaused(ctx context.Context, t *v1alpha1.Tenant) (ctrl.Result, error) {
	before, p := t.DeepCopy(), &pass{tenant: t}
	p.set(v1alpha1.Paused, true, v1alpha1.ReasonPaused,
		"nothing is reconciled, a deletion included, until annotation %s is taken off", v1alpha1.AnnotationPaused)
	if again, err := r.patchStatus(ctx, before, p); err != nil || !again {
		return ctrl.Result{}, err
	}
	return lookAgain, nil
}

// reconcileSteps runs the steps. Without the first none of the others can be;
// these run even when one fails, because a tenant whose partition is away can
// still be written to and needs its tokens.
func (r *TenantReconciler) reconcileSteps(ctx context.Context, p *pass) (ctrl.Result, error) {
	err := r.run(ctx, p, step{"store", r.applyStore})
	if err == nil {
		// The vector store takes longest, and tokens need nothing of it.
		placed := r.runBeside(ctx, p, step{"partition", r.ensurePartition})
		for _, e := range []error{
			r.run(ctx, p, step{"tokens", r.ensureTokens}),
			placed(),
			r.run(ctx, p, step{"usage", r.refreshUsage}),
		} {
			if !errors.Is(e, errHeld) {
				err = errors.Join(err, e)
			}
		}
	}
	p.summarize()
	switch {
	case retried(err):
		return lookAgain, nil
	case err != nil && !errors.Is(err, errHeld):
		return ctrl.Result{}, err
	}
	if p.unfinished {
		// What takes Milvus minutes is looked at more rarely: thousands may wait for it.
		return ctrl.Result{RequeueAfter: max(r.config.Poll, min(p.loadingFor()/5, r.config.Resync))}, nil
	}
	// Spread, so that the tenants of a restarted operator do not stay in step.
	jitter := time.Duration(rand.Int64N(int64(r.config.Resync)/5 + 1))
	return ctrl.Result{RequeueAfter: r.config.Resync - jitter/2}, nil
}

// run does a step and measures it.
func (r *TenantReconciler) run(ctx context.Context, p *pass, s step) error {
	start := time.Now()
	err := s.do(ctx, p)
	r.metrics.steps.WithLabelValues(s.name, outcome(err)).Observe(time.Since(start).Seconds())
	if err != nil && !errors.Is(err, errHeld) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return err
}

// runBeside runs a step while others run. The function it returns waits for the
// step and takes over what came of it, a panic included.
func (r *TenantReconciler) runBeside(ctx context.Context, p *pass, s step) (join func() error) {
	beside := &pass{tenant: p.tenant.DeepCopy(), stored: p.stored}
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
		err = r.run(ctx, beside, s)
	}()
	return func() error {
		<-done
		if panicked != nil {
			panic(panicked)
		}
		p.take(beside)
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
