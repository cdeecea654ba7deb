package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// orphanSweep runs SweepOrphans periodically on the leader, after the cache has
// synced.
type orphanSweep struct{ r *TenantReconciler }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*orphanSweep) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (s *orphanSweep) Start(ctx context.Context) error {
	tick := time.NewTicker(s.r.config.Sweep)
	defer tick.Stop()
	for {
		if err := s.r.SweepOrphans(ctx); err != nil && ctx.Err() == nil {
			s.r.config.Logger.WarnContext(ctx, "sweep of orphaned tenants failed; will be retried", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// SweepOrphans finds the stored tenants of this cluster whose Tenant was removed
// without being finalized, because its finalizer was removed by hand. It revokes
// their tokens. If their deletion policy is Delete, it purges them after the grace
// period, or at once if they are empty, unless a Tenant adopts them. Nothing else
// purges a tenant without a request.
func (r *TenantReconciler) SweepOrphans(ctx context.Context) error {
	// Before listing Tenants: a Tenant is in the cache before it is stored.
	records, err := r.records.Records(ctx, tenant.RecordsOf{Cluster: r.config.Cluster})
	if err != nil {
		return fmt.Errorf("list stored tenants: %w", err)
	}
	exists, err := r.listUIDs(ctx)
	if err != nil {
		return fmt.Errorf("list Tenants: %w", err)
	}
	var errs []error
	for _, record := range records {
		if exists[record.Resource] || !r.isWatched(record.Namespace) {
			continue
		}
		if err := r.sweepOrphan(ctx, record); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", record.ID, err))
		}
	}
	return errors.Join(errs...)
}

// uidPage is the number of Tenants listed per request.
const uidPage = 500

// listUIDs returns the uids of all Tenants, including those of other shards, which
// the cache does not hold.
func (r *TenantReconciler) listUIDs(ctx context.Context) (map[tenant.ID]bool, error) {
	uids := map[tenant.ID]bool{}
	if r.config.Selector.Empty() {
		var list v1alpha1.TenantList
		err := r.client.List(ctx, &list)
		for i := range list.Items {
			uids[tenant.ID(list.Items[i].UID)] = true
		}
		return uids, err
	}
	namespaces := r.config.Namespaces // rights may be limited to them
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if err := r.addUIDs(ctx, namespace, uids); err != nil {
			return nil, err
		}
	}
	return uids, nil
}

// addUIDs adds the uids of the Tenants at the API server.
func (r *TenantReconciler) addUIDs(ctx context.Context, namespace string, uids map[tenant.ID]bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("TenantList"))
	for {
		if err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(uidPage), client.Continue(list.Continue)); err != nil {
			return err
		}
		for i := range list.Items {
			uids[tenant.ID(list.Items[i].UID)] = true
		}
		if list.Continue == "" {
			return nil
		}
	}
}

// sweepName is SweepOrphans for one name whose Tenant is gone or was replaced. The
// API server can lose a finalizer that is added while it deletes the Tenant, which
// orphans what was stored in the meantime. again means that a purge is in progress
// or due.
func (r *TenantReconciler) sweepName(ctx context.Context, key client.ObjectKey) (again bool, err error) {
	records, err := r.records.Records(ctx, tenant.RecordsOf{Cluster: r.config.Cluster, Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return false, fmt.Errorf("list stored tenants: %w", err)
	}
	for _, record := range records {
		if err := r.sweepOrphan(ctx, record); err != nil {
			return false, fmt.Errorf("tenant %s: %w", record.ID, err)
		}
		again = again || record.State == tenant.Purging || r.isPurgeable(record)
	}
	return again, nil
}

func (r *TenantReconciler) sweepOrphan(ctx context.Context, record tenant.Record) error {
	orphan, purge := record.State == tenant.Active, r.isPurgeable(record)
	if !orphan && !purge {
		return nil
	}
	current, err := r.currentTenant(ctx, record)
	if err != nil || tenant.ID(current.UID) == record.Resource {
		return err
	}
	log := r.config.Logger.With("tenant", record.ID, "namespace", record.Namespace, "name", record.Name, "policy", record.Policy)
	if orphan {
		log.WarnContext(ctx, "revoking the tokens of an orphaned tenant; its data is retained")
		if err := r.records.MarkOrphaned(ctx, record.ID); err != nil {
			return err
		}
		record.State = tenant.Retained
	}
	if !purge {
		return nil
	}
	if adopted, err := r.adopts(ctx, current, record); err != nil || adopted {
		return err
	}
	log.WarnContext(ctx, "purging an orphaned tenant", "retired_at", record.RetiredAt)
	if _, err := r.store.Retire(ctx, record.Resource, tenant.Delete); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}

// isPurgeable reports whether the record may be purged if its Tenant is gone.
func (r *TenantReconciler) isPurgeable(record tenant.Record) bool {
	u := record.Usage
	empty := u.Memories == 0 && u.Conversations == 0 && u.Blocked == 0 && u.Storage == 0
	late := record.State == tenant.Retained && r.config.Now().Sub(record.RetiredAt) > r.config.OrphanGrace
	return record.Policy == tenant.Delete && record.State != tenant.Purging && (empty || late)
}

// currentTenant returns the Tenant that has the record's name at the API server,
// an empty one if there is none.
func (r *TenantReconciler) currentTenant(ctx context.Context, record tenant.Record) (*v1alpha1.Tenant, error) {
	t := &v1alpha1.Tenant{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: record.Namespace, Name: record.Name}, t)
	if client.IgnoreNotFound(err) != nil {
		return t, fmt.Errorf("get Tenant: %w", err)
	}
	return t, nil
}

func (r *TenantReconciler) isWatched(namespace string) bool {
	return len(r.config.Namespaces) == 0 || slices.Contains(r.config.Namespaces, namespace)
}
