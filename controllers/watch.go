package controllers

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// tenantUIDs indexes Tenants by their uids. Their ids in the store differ after an
// adoption, but are known only from the status, which others may write.
const tenantUIDs = "uid"

// secretOwners indexes Secrets by the uid of the owning Tenant, because filtering
// all Secrets of a namespace is slow if it has many Tenants.
const secretOwners = "owner"

// Retries of a Tenant back off exponentially. Their total rate is limited to
// protect a store that has just recovered.
const (
	backoffBase   = 200 * time.Millisecond
	backoffMax    = time.Minute
	retriesSecond = 20
	retriesBurst  = 100
)

func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](backoffBase, backoffMax),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(retriesSecond, retriesBurst)},
	)
}

// SetupWithManager registers the reconciler. Tenants are reconciled when their
// spec or annotations change, when one of their Secrets changes, and when they change
// in the store.
func (r *TenantReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Tenant{}, tenantUIDs, uidOf); err != nil {
		return fmt.Errorf("index tenants: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Secret{}, secretOwners, ownerOf); err != nil {
		return fmt.Errorf("index Secrets: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("tenant").
		// Status changes are the operator's own.
		For(&v1alpha1.Tenant{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.findOwner), builder.WithPredicates(predicate.Funcs{
			// Secrets are created by the reconciler itself.
			CreateFunc: func(ctrlevent.CreateEvent) bool { return false },
		})).
		WatchesRawSource(source.Func(r.followChanges)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.config.Workers,
			RateLimiter:             rateLimiter(),
		})
	if r.hasCells() {
		b = b.Watches(&v1alpha1.Cell{}, handler.EnqueueRequestsFromMapFunc(r.tenantsOfCell), builder.WithPredicates(cellChanged))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up tenant controller: %w", err)
	}
	return nil
}

func uidOf(o client.Object) []string { return []string{string(o.GetUID())} }

// findOwner returns the Tenant that owns a Secret, if this operator watches it.
func (r *TenantReconciler) findOwner(ctx context.Context, secret client.Object) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil {
		return nil
	}
	keys := r.find(ctx, tenant.ID(owner.UID))
	requests := make([]reconcile.Request, 0, len(keys))
	for _, key := range keys {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

func ownerOf(o client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
