package controllers

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
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
// spec or annotations change, when one of their Secrets changes, and when they are
// received from Config.Changes.
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
		Owns(&corev1.Secret{}, builder.WithPredicates(predicate.Funcs{
			// Secrets are created by the reconciler itself.
			CreateFunc: func(ctrlevent.CreateEvent) bool { return false },
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.config.Workers,
			RateLimiter:             rateLimiter(),
		})
	if r.config.Changes != nil {
		b = b.WatchesRawSource(source.Func(r.followChanges))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up tenant controller: %w", err)
	}
	return nil
}

func uidOf(o client.Object) []string { return []string{string(o.GetUID())} }

func ownerOf(o client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// followChanges enqueues the Tenants received from Config.Changes until ctx is done.
func (r *TenantReconciler) followChanges(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case id, open := <-r.config.Changes:
				if !open {
					return
				}
				for _, key := range r.find(ctx, id) {
					queue.Add(reconcile.Request{NamespacedName: key})
				}
			}
		}
	}()
	return nil
}

// find returns the Tenant with the uid. On an error, the resync reconciles it.
func (r *TenantReconciler) find(ctx context.Context, uid tenant.ID) []types.NamespacedName {
	var list v1alpha1.TenantList
	if err := r.client.List(ctx, &list, client.MatchingFields{tenantUIDs: string(uid)}); err != nil {
		r.config.Logger.WarnContext(ctx, "find changed tenant", "uid", uid, "error", err)
		return nil
	}
	keys := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys
}
