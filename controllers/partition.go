package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ensurePartition assigns a placement to the tenant, ensures its partition, and
// migrates the tenant if its isolation changed. A partition that was lost is
// recreated and filled from PostgreSQL.
func (r *TenantReconciler) ensurePartition(ctx context.Context, p *pass) error {
	state, err := r.placementState(ctx, p)
	refused := err // the Tenant stays where it is
	if err != nil && (refusedCell(err) == "" || !state.Assigned()) {
		return p.failPlacement(err)
	}
	p.tenant.Status.Placement = placementStatus(state)
	state, err = r.ensureLocations(ctx, p, state)
	if errors.Is(err, placement.ErrLoading) {
		r.loading.begin(p.tenant)
		p.unfinished = true
		p.setCondition(v1alpha1.IndexReady, false, v1alpha1.ReasonLoading,
			"Milvus is loading the partition; until then, writes work and searches use keywords only")
		return nil
	}
	if err != nil {
		p.setFailed(v1alpha1.IndexReady, err)
		return err
	}
	if refused != nil {
		return p.failPlacement(refused)
	}
	if p.tenant.Spec.Placement != nil && !r.hasCells() && !r.config.Unindexed {
		p.setCondition(v1alpha1.IndexReady, false, v1alpha1.ReasonCellsDisabled,
			"remove spec.placement, or ask the platform administrator to enable cells; until then, the default Milvus is used")
		return errStalled
	}
	p.setIndexReady(state, r.config.Unindexed)
	return nil
}

// ensureLocations ensures the partition of the tenant, and that of the target of a migration. It returns
// the state, which includes what has to be filled.
func (r *TenantReconciler) ensureLocations(ctx context.Context, p *pass, state placement.State) (placement.State, error) {
	recreated, err := r.ensurePlacement(ctx, p, state.Current)
	switch {
	case errors.Is(err, placement.ErrLoading):
	case err == nil && recreated && p.stored.Placement.Assigned():
		if state.Current.PartitionID != 0 || state.Rebuilding() { // lost now, or in an earlier pass
			p.recordWarning("PartitionLost", "the partition was lost; it was recreated and its content is being indexed")
			r.reportLost(collectionKey(state.Current.Cell, state.Current.Collection))
		}
		if state, err = r.store.ReconcilePlacement(ctx, p.stored.ID); refusedCell(err) != "" { // now includes what has to be filled
			err = nil
		}
	case state.Migrating(): // also from an unavailable cell
		if _, target := r.ensurePlacement(ctx, p, state.Migration.Target); !errors.Is(target, placement.ErrLoading) {
			err = errors.Join(err, target) // otherwise, the next pass continues the migration
		}
	}
	return state, err
}

// mergePartition merges the results of ensurePartition from a concurrent pass.
func (p *pass) mergePartition(other *pass) {
	p.tenant.Status.Placement = other.tenant.Status.Placement
	if c := meta.FindStatusCondition(other.tenant.Status.Conditions, v1alpha1.IndexReady); c != nil {
		meta.SetStatusCondition(&p.tenant.Status.Conditions, *c)
	}
	p.events = append(p.events, other.events...)
	p.unfinished = p.unfinished || other.unfinished
}

// loading holds when the index of a Tenant began to load after IndexReady was False for another
// reason. The transition time of the condition is then earlier.
type loading struct {
	mu    sync.Mutex
	begun map[types.UID]time.Time
}

// begin is called before IndexReady is set.
func (l *loading) begin(t *v1alpha1.Tenant) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.IndexReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason == v1alpha1.ReasonLoading {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[t.UID] = time.Now()
}

func (l *loading) forget(t types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.begun, t)
}

// elapsed returns how long IndexReady has been False with reason Loading, 0 if it is not.
func (l *loading) elapsed(t *v1alpha1.Tenant) time.Duration {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.IndexReady)
	if c == nil || c.Reason != v1alpha1.ReasonLoading {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since := c.LastTransitionTime.Time
	if begun := l.begun[t.UID]; begun.After(since) { // otherwise, it loaded earlier
		since = begun
	}
	return time.Since(since)
}

// setIndexReady sets IndexReady. unindexed means that the installation has no index.
func (p *pass) setIndexReady(state placement.State, unindexed bool) {
	switch {
	case state.Rebuilding():
		p.unfinished = true
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonRebuilding,
			"lost vectors are being rewritten; searches stay available, some of them from the database only")
	case state.Migrating():
		p.unfinished = true
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonMigrating,
			"vectors are being copied to collection %s%s; the tenant stays usable", state.Migration.Target.Collection, ofCell(state.Migration.Target.Cell))
	case state.Next != (placement.Next{}): // a notification follows each change
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonReembedding,
			"vectors are being computed with embedding model %s; the tenant stays usable", state.Next.Model)
	case !state.Current.Indexed() && unindexed:
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonUnindexed, "searches score all vectors; no index is used")
	case !state.Current.Indexed():
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonUnindexed,
			"searches score all vectors; an index is used once a user has more than %d units", placement.ExactUnits)
	default:
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonAssigned, "the partition exists and is loaded")
	}
}

// placementState returns the tenant's placement. It queries the store only if
// something has to change: usually, the result of syncStore is sufficient.
func (r *TenantReconciler) placementState(ctx context.Context, p *pass) (placement.State, error) {
	state := p.stored.Placement
	if !state.Assigned() {
		if _, err := r.store.EnsurePlacement(ctx, p.stored.ID); err != nil {
			return state, fmt.Errorf("ensure placement: %w", err)
		}
	} else if r.isPlaced(p.tenant, state) && !state.Migrating() && !state.Rebuilding() {
		return state, nil
	}
	state, err := r.store.ReconcilePlacement(ctx, p.stored.ID)
	if err != nil {
		return state, fmt.Errorf("reconcile placement: %w", err)
	}
	return state, nil
}

// ensurePlacement ensures the partition of a placement. recreated means that it is
// a different one than recorded; its content is then filled by a job.
func (r *TenantReconciler) ensurePlacement(ctx context.Context, p *pass, at placement.Placement) (recreated bool, err error) {
	partitionID, err := placement.EnsurePartition(ctx, r.store, r.partitions, at)
	if err != nil || partitionID == at.PartitionID {
		return false, err
	}
	if err := r.store.SetPartitionID(ctx, p.stored.ID, at.Location, partitionID); err != nil {
		return false, fmt.Errorf("set partition id: %w", err)
	}
	return true, nil
}

// requestedKind returns the kind of location that the Tenant is to be placed in once it
// has outgrown exact scoring.
func (r *TenantReconciler) requestedKind(t *v1alpha1.Tenant) placement.Kind {
	if r.config.Unindexed {
		return placement.Unindexed
	}
	return isolation(t).Kind()
}

func isolation(t *v1alpha1.Tenant) tenant.Isolation {
	if t.Spec.Isolation == v1alpha1.Shared {
		return tenant.Shared
	}
	return tenant.Partition
}

func placementStatus(state placement.State) *v1alpha1.TenantPlacement {
	s := &v1alpha1.TenantPlacement{Model: state.Model, NextModel: state.Next.Model}
	if state.Migrating() {
		s.MigratingTo, s.MigratingToCell = state.Migration.Target.Collection, state.Migration.Target.Cell
	}
	switch state.Current.Kind() {
	case placement.Unindexed:
		return s
	case placement.Shared:
		s.Isolation = v1alpha1.Shared
	case placement.Own:
		s.Isolation = v1alpha1.Partition
	}
	s.Cell = state.Current.Cell
	s.Collection, s.Partition = state.Current.Collection, state.Current.Partition
	return s
}
