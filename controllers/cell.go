package controllers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// +kubebuilder:rbac:groups=mnemo.dev,resources=cells,verbs=list;watch;patch
// +kubebuilder:rbac:groups=mnemo.dev,resources=cells/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=mnemo-system,resources=secrets,verbs=get;create;update

// CellPinger reaches the vector stores of cells. milvus.Router implements it.
type CellPinger interface {
	// Ping returns an error if a cell cannot be reached with the connection, and
	// placement.ErrNotConnected if the connection has not reached this process.
	Ping(ctx context.Context, name string, connection placement.Connection) error
}

// CellReconciler reconciles Cells: it writes their connections to the Secret that the
// processes mount, stores them once they were reachable, and reports what is placed in them.
type CellReconciler struct {
	client  client.Client
	live    client.Reader // not cached
	config  Config
	store   placement.CellStore
	pinger  CellPinger
	metrics *cellMetrics
}

// NewCellReconciler returns a reconciler; config.CellsSecret must be set.
func NewCellReconciler(c client.Client, live client.Reader, config Config, s Stores) *CellReconciler {
	return &CellReconciler{client: c, live: live, config: config.withDefaults(), store: s.Cells, pinger: s.CellPinger, metrics: newCellMetrics()}
}

// Reconcile moves the observed state of a Cell toward the desired state.
func (r *CellReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	c := &v1alpha1.Cell{}
	if err := r.client.Get(ctx, req.NamespacedName, c); err != nil {
		r.metrics.remove(req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.DeletionTimestamp.IsZero() {
		if err := r.addFinalizer(ctx, c); err != nil {
			return retryConflict(err)
		}
	}
	before := c.DeepCopy()
	usage, leaving, err := r.store.CellUsage(ctx, c.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	c.Status.Tenants, c.Status.Units = usage.Tenants, usage.Units
	c.Status.ObservedGeneration = c.Generation
	if !c.DeletionTimestamp.IsZero() && usage.Tenants+leaving == 0 {
		return retryConflict(r.finalize(ctx, c))
	}
	state, err := r.connect(ctx, c)
	if err == nil {
		r.metrics.setReady(c.Name, state.reason == v1alpha1.ReasonConnected)
		if !c.DeletionTimestamp.IsZero() {
			state = inUse(c, state, leaving)
		}
		setCellReady(c, state)
	}
	r.metrics.set(c)
	if !equality.Semantic.DeepEqual(before.Status, c.Status) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err = errors.Join(err, client.IgnoreNotFound(r.client.Status().Patch(ctx, c, patch)))
	}
	if err != nil {
		return retryConflict(err)
	}
	interval := r.config.CheckIndex
	if state.reason != v1alpha1.ReasonConnected && state.reason != v1alpha1.ReasonInUse {
		interval = min(interval, r.config.Poll)
	}
	return ctrl.Result{RequeueAfter: interval}, nil
}

// retryConflict repeats a pass soon if the Cell or the Secret changed after it was read.
func retryConflict(err error) (ctrl.Result, error) {
	if isConflict(err) {
		return requeueSoon, nil
	}
	return ctrl.Result{}, err
}

func (r *CellReconciler) addFinalizer(ctx context.Context, c *v1alpha1.Cell) error {
	before := c.DeepCopy()
	if !controllerutil.AddFinalizer(c, v1alpha1.CellFinalizer) {
		return nil
	}
	if err := r.client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}

// finalize removes a Cell in which nothing is placed.
func (r *CellReconciler) finalize(ctx context.Context, c *v1alpha1.Cell) error {
	if err := r.store.DeleteCell(ctx, c.Name); err != nil {
		return err
	}
	if err := r.writeConnection(ctx, c.Name, nil); err != nil {
		return err
	}
	r.metrics.remove(c.Name)
	before := c.DeepCopy()
	controllerutil.RemoveFinalizer(c, v1alpha1.CellFinalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.client.Patch(ctx, c, patch)); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// connect writes the connection, and stores the cell when it is reachable for the first
// time. A stored cell is updated even while it is unreachable, so that it can be drained.
func (r *CellReconciler) connect(ctx context.Context, c *v1alpha1.Cell) (cellState, error) {
	cell := placement.Cell{
		Name: c.Name, Region: c.Spec.Region, Cordoned: c.Spec.Cordoned || !c.DeletionTimestamp.IsZero(),
		Capacity: placement.CellUsage{Tenants: c.Spec.Capacity.Tenants, Units: c.Spec.Capacity.Units},
	}
	if err := r.store.UpdateCell(ctx, cell); err != nil {
		return cellState{}, err
	}
	connection, problem, err := r.connection(ctx, c)
	if err != nil {
		return cellState{}, err
	}
	if problem != "" {
		return cellState{v1alpha1.ReasonSecretNotFound, problem}, nil
	}
	if err := r.writeConnection(ctx, c.Name, connection); err != nil {
		return cellState{}, err
	}
	switch err := r.pinger.Ping(ctx, c.Name, *connection); {
	case errors.Is(err, placement.ErrNotConnected):
		return cellState{v1alpha1.ReasonConnecting, fmt.Sprintf(
			"the connection was written to Secret %s; Kubernetes updates it in running pods within about a minute", r.config.CellsSecret.Name)}, nil
	case err != nil:
		return cellState{v1alpha1.ReasonUnavailable, publicMessage(err) + "; check spec.milvus and the network policies"}, nil
	}
	if err := r.store.ApplyCell(ctx, cell); err != nil {
		return cellState{}, err
	}
	message := "Milvus is reachable"
	if c.Spec.Cordoned {
		message += "; no more Tenants are placed here, because spec.cordoned is true"
	}
	return cellState{v1alpha1.ReasonConnected, message}, nil
}
