package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// orphanSweep runs SweepOrphans again and again while this replica leads. It is
// started when the cache has synced.
type orphanSweep struct{ r *TenantReconciler }

// NeedLeaderElection lets only the leader sweep.
func (*orphanSweep) NeedLeaderElection() bool { return true }

// Start sweeps until ctx ends.
func (s *orphanSweep) Start(ctx context.Context) error {
	tick := time.NewTicker(s.r.config.Sweep)
	defer tick.Stop()
	for {
		if err := s.r.SweepOrphans(ctx); err != nil && ctx.Err() == nil {
			s.r.config.Logger.WarnContext(ctx, "sweep of tenants without a Tenant: it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// SweepOrphans looks at what is stored of this cluster's tenants. Those whose
// Tenant went without the operator seeing it, because its finalizer was taken
// off, lose their tokens; if their policy was Delete, their data is purged once
// the grace has passed. Nothing else ever purges a tenant by itself.
func (r *TenantReconciler) SweepOrphans(ctx context.Context) error {
	// Before the Tenants, of which the cache had each before it was stored.
	records, err := r.records.Records(ctx, r.config.Cluster)
	if err != nil {
		return fmt.Errorf("list stored tenants: %w", err)
	}
	var list v1alpha1.TenantList
	if err := r.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list Tenants: %w", err)
	}
	there := make(map[tenant.ID]bool, len(list.Items))
	for i := range list.Items {
		there[tenant.ID(list.Items[i].UID)] = true
	}
	var errs []error
	for _, record := range records {
		if there[record.Resource] || !r.serves(record.Namespace) {
			continue
		}
		if err := r.sweepOrphan(ctx, record); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", record.ID, err))
		}
	}
	return errors.Join(errs...)
}

func (r *TenantReconciler) sweepOrphan(ctx context.Context, record tenant.Record) error {
	abandon := record.State == tenant.Active
	discard := record.State == tenant.Retained && record.Policy == tenant.Delete &&
		r.config.Now().Sub(record.RetiredAt) > r.config.OrphanGrace
	if !abandon && !discard {
		return nil
	}
	if there, err := r.isThere(ctx, record); err != nil || there {
		return err
	}
	log := r.config.Logger.With("tenant", record.ID, "namespace", record.Namespace, "name", record.Name, "policy", record.Policy)
	if abandon {
		log.WarnContext(ctx, "a stored tenant has no Tenant: its tokens are revoked and its data is kept")
		return r.records.Abandon(ctx, record.ID)
	}
	log.WarnContext(ctx, "a stored tenant has had no Tenant for longer than the grace: its data is purged", "since", record.RetiredAt)
	return tenant.Keeper{Records: r.records, Store: r.store, Partitions: r.partitions}.Discard(ctx, record)
}

// isThere asks the API server whether the record's Tenant exists.
func (r *TenantReconciler) isThere(ctx context.Context, record tenant.Record) (bool, error) {
	t := &v1alpha1.Tenant{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: record.Namespace, Name: record.Name}, t)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the Tenant: %w", err)
	}
	return tenant.ID(t.UID) == record.Resource, nil
}

func (r *TenantReconciler) serves(namespace string) bool {
	return len(r.config.Namespaces) == 0 || slices.Contains(r.config.Namespaces, namespace)
}
