package controllers

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// applySpec stores the spec. The uid of the namespace is read only if the store has
// to record it: for a new Tenant, which may adopt data of its namespace.
func (r *TenantReconciler) applySpec(ctx context.Context, spec tenant.Spec) (tenant.Tenant, error) {
	stored, err := r.store.Apply(ctx, spec)
	if !errors.Is(err, tenant.ErrNamespaceUIDRequired) {
		return stored, err
	}
	ns, err := r.namespace(ctx, spec.Namespace)
	if err != nil {
		return tenant.Tenant{}, err
	}
	spec.NamespaceUID = string(ns.UID)
	return r.store.Apply(ctx, spec)
}

// setNameConflict reports that the name belongs to another tenant. That one may be
// an orphan, which can be adopted or purged once it is marked.
func (r *TenantReconciler) setNameConflict(ctx context.Context, p *pass, conflict tenant.NameConflict) error {
	p.setCondition(v1alpha1.Synced, false, string(conflict.Reason), "%s", conflict.Error())
	again, err := r.sweepName(ctx, client.ObjectKeyFromObject(p.tenant))
	if err != nil {
		return err
	}
	p.unfinished = again || conflict.Reason == tenant.NameInUse || conflict.Reason == tenant.NamePurging
	return errStalled
}

// adopts reports whether the Tenant may adopt the record and wants to.
func (r *TenantReconciler) adopts(ctx context.Context, t *v1alpha1.Tenant, record tenant.Record) (bool, error) {
	if t.UID == "" || !t.DeletionTimestamp.IsZero() || t.Spec.Adoption.Policy == v1alpha1.AdoptNever {
		return false, nil
	}
	ns, err := r.namespace(ctx, t.Namespace)
	if err != nil {
		return false, fmt.Errorf("compare namespaces: %w", err)
	}
	return string(ns.UID) == record.NamespaceUID, nil
}
