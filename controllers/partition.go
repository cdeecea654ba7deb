package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ensurePartition places the tenant and makes its partition. A partition that
// had to be made for a tenant placed earlier was lost, or could not be made
// then: what is in PostgreSQL is indexed again.
func (r *TenantReconciler) ensurePartition(ctx context.Context, p *pass) error {
	placement, placed := p.stored.Placement, p.stored.Placement != tenant.Placement{}
	if !placed {
		var err error
		if placement, err = r.store.Place(ctx, p.stored.ID); err != nil {
			p.fail(v1alpha1.PartitionReady, err)
			return fmt.Errorf("place tenant: %w", err)
		}
	}
	created, err := r.partitions.Ensure(ctx, placement)
	if err != nil {
		p.fail(v1alpha1.PartitionReady, err)
		return fmt.Errorf("ensure partition: %w", err)
	}
	seen := p.tenant.Status.Placement != nil
	p.tenant.Status.Placement = &v1alpha1.TenantPlacement{
		Collection: placement.Collection, Partition: placement.Partition,
	}
	if (created && placed) || p.reason(v1alpha1.PartitionReady) == v1alpha1.ReasonReindexPending {
		if err := r.store.Reindex(ctx, p.stored.ID); err != nil {
			// The partition is there by now: the reason remembers what is owed.
			p.set(v1alpha1.PartitionReady, false, v1alpha1.ReasonReindexPending,
				"the partition is new and its content could not be asked for: %s", shown(err))
			return fmt.Errorf("reindex: %w", err)
		}
		if seen {
			p.warn("PartitionLost", "the partition was gone; it is there again and its content is being indexed")
		}
	}
	if p.tenant.Spec.Isolation == v1alpha1.Shared {
		p.set(v1alpha1.PartitionReady, true, v1alpha1.ReasonPlacedAsPartition,
			"isolation Shared is not there yet: the tenant has a partition of its own, as with Partition")
		return nil
	}
	p.set(v1alpha1.PartitionReady, true, v1alpha1.ReasonPlaced, "the partition is there")
	return nil
}

// reason returns the reason of a condition as it is now, "" without one.
func (p *pass) reason(condition string) string {
	if c := meta.FindStatusCondition(p.tenant.Status.Conditions, condition); c != nil {
		return c.Reason
	}
	return ""
}
