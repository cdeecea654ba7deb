package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
// Tenant went without being let go, because its finalizer was taken off, lose
// their tokens; if their policy was Delete, they are purged once the grace has
// passed, or at once when they hold nothing, and not while a Tenant claims them.
// Nothing else ever purges a tenant by itself.
func (r *TenantReconciler) SweepOrphans(ctx context.Context) error {
	// Before the Tenants, of which the cache had each before it was stored.
	records, err := r.records.Records(ctx, tenant.RecordsOf{Cluster: r.config.Cluster})
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

// sweepName does the same for what is stored under one name, when its Tenant is
// gone or another one has the name. The API server can lose a finalizer: one
// that is added while it deletes the Tenant goes with it, and what was made for
// the Tenant meanwhile is left. again says that it is worth another look soon.
func (r *TenantReconciler) sweepName(ctx context.Context, key client.ObjectKey) (again bool, err error) {
	records, err := r.records.Records(ctx, tenant.RecordsOf{Cluster: r.config.Cluster, Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return false, fmt.Errorf("list stored tenants: %w", err)
	}
	for _, record := range records {
		if err := r.sweepOrphan(ctx, record); err != nil {
			return false, fmt.Errorf("tenant %s: %w", record.ID, err)
		}
		again = again || record.State == tenant.Purging || r.discards(record)
	}
	return again, nil
}

func (r *TenantReconciler) sweepOrphan(ctx context.Context, record tenant.Record) error {
	abandon, discard := record.State == tenant.Active, r.discards(record)
	if !abandon && !discard {
		return nil
	}
	heir, err := r.holder(ctx, record)
	if err != nil || tenant.ID(heir.UID) == record.Resource {
		return err
	}
	log := r.config.Logger.With("tenant", record.ID, "namespace", record.Namespace, "name", record.Name, "policy", record.Policy)
	if abandon {
		log.WarnContext(ctx, "a stored tenant has no Tenant: its tokens are revoked and its data is kept")
		if err := r.records.Abandon(ctx, record.ID); err != nil {
			return err
		}
		record.State = tenant.Retained
	}
	if !discard || claims(heir, record) {
		return nil
	}
	log.WarnContext(ctx, "a stored tenant without a Tenant is purged: it holds nothing, or the grace has passed", "since", record.RetiredAt)
	return tenant.Keeper{Records: r.records, Store: r.store, Partitions: r.partitions}.Discard(ctx, record)
}

// discards reports whether nothing speaks for keeping the record if its Tenant
// is gone.
func (r *TenantReconciler) discards(record tenant.Record) bool {
	u := record.Usage
	empty := u.Memories == 0 && u.Conversations == 0 && u.Blocked == 0 && u.Storage == 0
	late := record.State == tenant.Retained && r.config.Now().Sub(record.RetiredAt) > r.config.OrphanGrace
	return record.Policy == tenant.Delete && record.State != tenant.Purging && (empty || late)
}

// holder asks the API server for the Tenant that has the record's name now: its
// own, another one, or an empty one.
func (r *TenantReconciler) holder(ctx context.Context, record tenant.Record) (*v1alpha1.Tenant, error) {
	t := &v1alpha1.Tenant{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: record.Namespace, Name: record.Name}, t)
	if client.IgnoreNotFound(err) != nil {
		return t, fmt.Errorf("look for the Tenant: %w", err)
	}
	return t, nil
}

// claims reports whether the Tenant asks to adopt the record.
func claims(t *v1alpha1.Tenant, record tenant.Record) bool {
	claim := tenant.ID(t.Spec.Claim)
	return claim != "" && (claim == record.ID || claim == record.Resource)
}

func (r *TenantReconciler) serves(namespace string) bool {
	return len(r.config.Namespaces) == 0 || slices.Contains(r.config.Namespaces, namespace)
}
