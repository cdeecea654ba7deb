package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// reconcileDeletion finalizes a deleted Tenant: it revokes the tokens, retains or
// purges the data, deletes the Secrets and removes the finalizer.
func (r *TenantReconciler) reconcileDeletion(ctx context.Context, p *pass) (ctrl.Result, error) {
	t := p.tenant
	if !controllerutil.ContainsFinalizer(t, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	t.Status.ObservedGeneration = t.Generation
	p.removeCondition(v1alpha1.Reconciling, v1alpha1.Stalled)
	if t.Spec.PreventDeletion {
		p.setCondition(v1alpha1.Ready, false, v1alpha1.ReasonDeletionPrevented,
			"spec.preventDeletion blocks the deletion; data and access are unchanged; set it to false to proceed")
		return ctrl.Result{}, nil
	}
	p.removeCondition(v1alpha1.Suspended) // it states that nothing is deleted
	var wait time.Duration
	err := r.run(ctx, p, step{"delete", func(ctx context.Context, p *pass) (err error) {
		wait, err = r.finalize(ctx, p)
		return err
	}})
	if isConflict(err) {
		return requeueSoon, nil
	}
	if err != nil {
		p.setCondition(v1alpha1.Ready, false, reasonFor(err), "deletion is blocked: %s", blockedMessage(t, err))
		return ctrl.Result{}, err
	}
	if wait > 0 {
		return requeueCheck(wait), nil
	}
	return ctrl.Result{}, nil
}

// finalize makes one attempt. wait > 0 requests another. It identifies the data by
// the Tenant's uid only: an author with rights on the status could otherwise name the data
// of another tenant.
func (r *TenantReconciler) finalize(ctx context.Context, p *pass) (wait time.Duration, err error) {
	t := p.tenant
	left, err := r.store.Retire(ctx, tenant.ID(t.UID), deletionPolicy(t))
	if err != nil {
		return 0, fmt.Errorf("retire tenant: %w", err)
	}
	t.Status.Purge = purgeStatus(left)
	if !left.Done() {
		p.setPurging(left)
		return r.config.Poll, r.dropLast(ctx, left)
	}
	err = r.deleteSecrets(ctx, t, func(*corev1.Secret) bool { return true })
	if err != nil && !r.lostSecrets(ctx, t, err) {
		return 0, err
	}
	return 0, r.removeFinalizer(ctx, t)
}

// lostSecrets reports whether err means that the operator has lost its rights to the Secrets of the
// namespace: Kubernetes deletes the RoleBinding with the namespace. It also deletes the Secrets,
// with the namespace or with the Tenant, which owns them. Their tokens are revoked already.
func (r *TenantReconciler) lostSecrets(ctx context.Context, t *v1alpha1.Tenant, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return apierrors.IsForbidden(r.live.List(ctx, secrets, client.InNamespace(t.Namespace), client.Limit(1)))
}

// dropLast drops the locations once the rows are purged. The purge job does the
// same; here, an error is reported in the status.
func (r *TenantReconciler) dropLast(ctx context.Context, left tenant.Remaining) error {
	if left.Memories+left.Conversations > 0 {
		return nil
	}
	for _, at := range left.Locations {
		if err := r.partitions.Drop(ctx, at); err != nil {
			return fmt.Errorf("drop partition: %w", err)
		}
	}
	return nil
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

func purgeStatus(left tenant.Remaining) *v1alpha1.TenantPurge {
	if left.Done() {
		return nil
	}
	return &v1alpha1.TenantPurge{Memories: left.Memories, Conversations: left.Conversations, Partition: len(left.Locations) > 0}
}

// setPurging reports the progress of a purge, and why it fails.
func (p *pass) setPurging(left tenant.Remaining) {
	f := left.Failure
	if f.Attempts == 0 {
		p.setCondition(v1alpha1.Ready, false, v1alpha1.ReasonPurging, "%s", purgeMessage(left))
		return
	}
	cause := "an error"
	if f.SQLState != "" {
		cause = "PostgreSQL error " + f.SQLState
	}
	p.setCondition(v1alpha1.Ready, false, v1alpha1.ReasonFailed,
		"%s; %d attempts failed, the latest with %s, and it will be retried; the log of the API server has the failures of job %d",
		purgeMessage(left), f.Attempts, cause, f.Job)
}

func purgeMessage(left tenant.Remaining) string {
	message := fmt.Sprintf("purging; remaining: memories %d, conversations %d", left.Memories, left.Conversations)
	if len(left.Locations) > 0 {
		message += " and the partition"
	}
	return message
}

// blockedMessage says what blocks the deletion and how to bypass it.
func blockedMessage(t *v1alpha1.Tenant, err error) string {
	return fmt.Sprintf("%s. Will be retried. To remove the Tenant now and leave its data behind, run: "+
		"kubectl -n %s patch tenant %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
		strings.TrimSuffix(publicMessage(err), "."), t.Namespace, t.Name)
}
