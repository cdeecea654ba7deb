package controllers

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// refusedCell returns the reason for which no cell accepts a Tenant; "" for other errors.
func refusedCell(err error) string {
	switch {
	case errors.Is(err, placement.ErrCellNotFound):
		return v1alpha1.ReasonCellNotFound
	case errors.Is(err, placement.ErrCellFull):
		return v1alpha1.ReasonCellFull
	}
	return ""
}

// failPlacement reports why the Tenant could not be placed as requested. If no cell accepts
// it, a changed Cell is waited for.
func (p *pass) failPlacement(err error) error {
	reason := refusedCell(err)
	if reason == "" {
		p.setFailed(v1alpha1.IndexReady, err)
		return err
	}
	message := publicMessage(err)
	if refusal, ok := errors.AsType[*placement.Refusal](err); ok {
		message = refusal.Message
	}
	p.setCondition(v1alpha1.IndexReady, false, reason, "%s", message)
	return errStalled
}

// hasCells reports whether Cells are enabled.
func (r *TenantReconciler) hasCells() bool { return r.config.CellsSecret.Name != "" }

// reportLost has the other Tenants of the collection reconciled, which may be lost as
// a whole.
func (r *TenantReconciler) reportLost(collection string) {
	select {
	case r.lost <- collection:
	default: // each of the other Tenants reports it too
	}
}

// isPlaced reports whether the current location is of the wanted kind, and in the cell that the
// Tenant requests. Only the store knows the cells of a region.
func (r *TenantReconciler) isPlaced(t *v1alpha1.Tenant, state placement.State) bool {
	p, at := r.preference(t), state.Current.Location
	return at.Kind() == state.Wanted(r.requestedKind(t)) && (!at.Indexed() || p.Region == "" && at.Cell == p.Cell)
}

// preference returns where the Tenant requests to be placed.
func (r *TenantReconciler) preference(t *v1alpha1.Tenant) placement.Preference {
	if t.Spec.Placement == nil || !r.hasCells() {
		return placement.Preference{}
	}
	return placement.Preference{Cell: t.Spec.Placement.Cell, Region: t.Spec.Placement.Region}
}

func ofCell(name string) string {
	if name == "" {
		return ""
	}
	return " of cell " + name
}

// tenantsOfCell returns the Tenants that request a cell or its region, or are placed in it.
func (r *TenantReconciler) tenantsOfCell(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	c, ok := o.(*v1alpha1.Cell)
	if !ok {
		return nil
	}
	var list v1alpha1.TenantList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		r.config.Logger.WarnContext(ctx, "list Tenants of a cell", "cell", c.Name, "error", err)
		return nil
	}
	for i := range list.Items {
		t := &list.Items[i]
		requested := t.Spec.Placement != nil && (t.Spec.Placement.Cell == c.Name || t.Spec.Placement.Region != "" && t.Spec.Placement.Region == c.Spec.Region)
		if requested || t.Status.Placement != nil && t.Status.Placement.Cell == c.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(t)})
		}
	}
	return requests
}
