package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ensurePartition places the tenant, makes its place, and moves it to another
// one when its isolation changed. A place that was lost is made again and
// filled from PostgreSQL.
func (r *TenantReconciler) ensurePartition(ctx context.Context, p *pass) error {
	places, err := r.places(ctx, p)
	if err != nil {
		p.setFailed(v1alpha1.IndexReady, err)
		return err
	}
	p.tenant.Status.Placement = placementStatus(places)
	changed, err := r.ensurePlace(ctx, p, places.Current)
	switch {
	case errors.Is(err, placement.ErrLoading):
		p.unfinished = true
		p.setCondition(v1alpha1.IndexReady, false, v1alpha1.ReasonLoading,
			"Milvus is loading the partition; meanwhile writes go on and searches answer from words")
		return nil
	case err == nil && changed && p.stored.Placement.Assigned():
		if places.Current.PartitionID != 0 || places.Rebuilding() { // lost now, or in a pass before
			p.recordWarning("PartitionLost", "the partition was gone; it is there again and its content is being indexed")
		}
		places, err = r.store.ReconcilePlacement(ctx, p.stored.ID) // what there is to be filled is known by now
	case err == nil && places.Migrating():
		if _, err = r.ensurePlace(ctx, p, places.Migration.Target); errors.Is(err, placement.ErrLoading) {
			err = nil // it is filled when it can be
		}
	}
	if err != nil {
		p.setFailed(v1alpha1.IndexReady, err)
		return err
	}
	p.showPlaces(places)
	return nil
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

// loadingFor is how long the partition has not been ready because it is being
// loaded, 0 when it is not.
func (p *pass) loadingFor() time.Duration {
	c := meta.FindStatusCondition(p.tenant.Status.Conditions, v1alpha1.IndexReady)
	if c == nil || c.Reason != v1alpha1.ReasonLoading {
		return 0
	}
	return time.Since(c.LastTransitionTime.Time)
}

func (p *pass) showPlaces(places placement.State) {
	switch {
	case places.Rebuilding():
		p.unfinished = true
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonRebuilding,
			"what the index lost is being written anew; searches are answered meanwhile, some of them from the database alone")
	case places.Migrating():
		p.unfinished = true
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonMigrating,
			"vectors are being copied to collection %s; the tenant is used as ever until all are there", places.Migration.Target.Collection)
	default:
		p.setCondition(v1alpha1.IndexReady, true, v1alpha1.ReasonAssigned, "the partition is there")
	}
}

// places returns where the tenant is to be. The store is asked only when that
// is not what it is: in the steady state applying the spec has told.
func (r *TenantReconciler) places(ctx context.Context, p *pass) (placement.State, error) {
	places := p.stored.Placement
	if !places.Assigned() {
		at, err := r.store.EnsurePlacement(ctx, p.stored.ID)
		if err != nil {
			return places, fmt.Errorf("ensure placement: %w", err)
		}
		return placement.State{Current: placement.Placement{Location: at}}, nil
	}
	asked := isolation(p.tenant) == tenant.Shared
	if places.Current.Shared == asked && !places.Migrating() && !places.Rebuilding() {
		return places, nil
	}
	places, err := r.store.ReconcilePlacement(ctx, p.stored.ID)
	if err != nil {
		return places, fmt.Errorf("reconcile placement: %w", err)
	}
	return places, nil
}

// ensurePlace makes a place; changed says that it is another one than was known,
// and is filled with what there is.
func (r *TenantReconciler) ensurePlace(ctx context.Context, p *pass, place placement.Placement) (changed bool, err error) {
	made, err := placement.EnsurePartition(ctx, r.store, r.partitions, place)
	if err != nil || made == place.PartitionID {
		return false, err
	}
	if err := r.store.SetPartitionID(ctx, p.stored.ID, place.Location, made); err != nil {
		return false, fmt.Errorf("refill partition: %w", err)
	}
	return true, nil
}

func isolation(t *v1alpha1.Tenant) tenant.Isolation {
	if t.Spec.Isolation == v1alpha1.Shared {
		return tenant.Shared
	}
	return tenant.Partition
}

func placementStatus(places placement.State) *v1alpha1.TenantPlacement {
	s := &v1alpha1.TenantPlacement{
		Collection: places.Current.Collection, Partition: places.Current.Partition,
		Isolation: v1alpha1.Partition,
	}
	if places.Migrating() {
		s.MigratingTo = places.Migration.Target.Collection
	}
	if places.Current.Shared {
		s.Isolation = v1alpha1.Shared
	}
	return s
}

// locationOf returns the location in the status.
func locationOf(s *v1alpha1.TenantPlacement) placement.Location {
	return placement.Location{Collection: s.Collection, Partition: s.Partition, Shared: s.Isolation == v1alpha1.Shared}
}
