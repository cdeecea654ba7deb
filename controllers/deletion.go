package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// reconcileDeletion lets go of a Tenant that is deleted: its tokens are revoked,
// its data kept or purged as the policy says, its Secrets deleted, and at last
// its finalizer taken off.
func (r *TenantReconciler) reconcileDeletion(ctx context.Context, p *pass) (ctrl.Result, error) {
	t := p.tenant
	if !controllerutil.ContainsFinalizer(t, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	t.Status.ObservedGeneration = t.Generation
	if t.Spec.PreventDeletion {
		p.set(v1alpha1.Ready, false, v1alpha1.ReasonDeletionPrevented,
			"deleted, and held by spec.preventDeletion: the data and the access are there; set it to false to let it go")
		return ctrl.Result{}, nil
	}
	var wait time.Duration
	err := r.run(ctx, p, step{"delete", func(ctx context.Context, p *pass) (err error) {
		wait, err = r.letGo(ctx, p)
		return err
	}})
	if retried(err) {
		return lookAgain, nil
	}
	if err != nil {
		p.set(v1alpha1.Ready, false, reasonOf(err), "deletion is held: %s", heldBy(t, err))
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// letGo goes one round; wait > 0 asks for another.
func (r *TenantReconciler) letGo(ctx context.Context, p *pass) (wait time.Duration, err error) {
	t, policy := p.tenant, deletionPolicy(p.tenant)
	if policy == tenant.Delete && t.Status.Placement == nil {
		if found, err := r.findPlacement(ctx, p); err != nil || found {
			return time.Millisecond, err // known before the store forgets it
		}
	}
	// By the resource's uid, which a status that was never written cannot lose.
	rest, err := r.store.Retire(ctx, tenant.ID(t.UID), policy)
	if err != nil {
		return 0, fmt.Errorf("retire tenant: %w", err)
	}
	t.Status.Purge = purge(rest)
	if rows := (tenant.Remaining{Memories: rest.Memories, Conversations: rest.Conversations}); !rows.Done() {
		p.set(v1alpha1.Ready, false, v1alpha1.ReasonPurging, "%s", left(rest))
		return r.config.Poll, nil
	}
	if policy == tenant.Delete && t.Status.Placement != nil {
		if err := r.partitions.Drop(ctx, placement(t.Status.Placement)); err != nil {
			return 0, fmt.Errorf("drop partition: %w", err)
		}
	}
	if !rest.Done() {
		p.set(v1alpha1.Ready, false, v1alpha1.ReasonPurging, "%s", left(rest))
		return r.config.Poll, nil
	}
	if err := r.deleteSecrets(ctx, t, func(*corev1.Secret) bool { return true }); err != nil {
		return 0, err
	}
	return 0, r.removeFinalizer(ctx, t)
}

// findPlacement asks the store where the tenant is when the status does not say.
func (r *TenantReconciler) findPlacement(ctx context.Context, p *pass) (found bool, err error) {
	id := tenant.ID(p.tenant.UID)
	if p.tenant.Status.ID != "" {
		id = tenant.ID(p.tenant.Status.ID)
	}
	current, err := r.store.Place(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil // it was never applied
	}
	if err != nil {
		return false, fmt.Errorf("find placement: %w", err)
	}
	p.tenant.Status.Placement = placementStatus(tenant.Places{Current: tenant.Place{Placement: current}})
	return true, nil
}

func (r *TenantReconciler) removeFinalizer(ctx context.Context, t *v1alpha1.Tenant) error {
	after := t.DeepCopy()
	controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(t.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.client.Patch(ctx, after, patch)); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// purge is what the status says of what a purge has still to remove.
func purge(rest tenant.Remaining) *v1alpha1.TenantPurge {
	if rest.Done() {
		return nil
	}
	return &v1alpha1.TenantPurge{Memories: rest.Memories, Conversations: rest.Conversations, Partition: rest.Partition}
}

// left says what a purge has still to remove.
func left(rest tenant.Remaining) string {
	message := fmt.Sprintf("deleted; still to be purged: memories %d, conversations %d", rest.Memories, rest.Conversations)
	if rest.Partition {
		message += " and the partition"
	}
	return message
}

// heldBy says what holds the deletion and how to let go without it.
func heldBy(t *v1alpha1.Tenant, err error) string {
	return fmt.Sprintf("%s. It is tried again. To let go and leave what is there behind: "+
		"kubectl -n %s patch tenant %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
		strings.TrimSuffix(shown(err), "."), t.Namespace, t.Name)
}
