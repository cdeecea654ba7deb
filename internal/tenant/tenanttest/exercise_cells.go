package tenanttest

import (
	"errors"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// inCells returns the fixture of an applied tenant with a preference.
func inCells(t *testing.T, b Backend, p placement.Preference) *fixture {
	t.Helper()
	f := &fixture{Backend: b, spec: NewSpec()}
	f.spec.Placement = p
	f.apply(t)
	return f
}

func (b Backend) applyCell(t *testing.T, c placement.Cell) {
	t.Helper()
	if err := b.Cells.ApplyCell(t.Context(), c); err != nil {
		t.Fatalf("ApplyCell: %v", err)
	}
}

func (b Backend) updateCell(t *testing.T, c placement.Cell) {
	t.Helper()
	if err := b.Cells.UpdateCell(t.Context(), c); err != nil {
		t.Fatalf("UpdateCell: %v", err)
	}
}

func (b Backend) wantTenants(t *testing.T, cell string, want int64) {
	t.Helper()
	if usage, _, err := b.Cells.CellUsage(t.Context(), cell); err != nil || usage.Tenants != want {
		t.Errorf("CellUsage of %s = %+v, %v, want %d tenants", cell, usage, err, want)
	}
}

// placesInCells: a tenant that requests a region stays in a cell until that is cordoned, and
// without a request it returns to the default cell.
func placesInCells(c check) {
	t, b := c.t, c.Backend
	b.applyCell(t, placement.Cell{Name: "a", Region: "eu", Capacity: placement.CellUsage{Tenants: 10}})
	b.applyCell(t, placement.Cell{Name: "b", Region: "eu", Capacity: placement.CellUsage{Tenants: 10}})
	f, other := inCells(t, b, placement.Preference{Region: "eu"}), inCells(t, b, placement.Preference{Region: "eu"})
	first := f.ensurePlacement(t)
	if second := other.ensurePlacement(t); first.Cell != "a" || second.Cell != "b" {
		t.Fatalf("the tenants are in the cells %q and %q, want a and b", first.Cell, second.Cell)
	}
	f.setPartitionID(t, first, 41)
	f.apply(t)
	if got := f.reconcilePlacement(t); got != withoutModel(f.got.Placement) {
		t.Errorf("ReconcilePlacement = %+v without a change, want %+v", got, f.got.Placement)
	}
	b.wantTenants(t, "a", 1)
	if err := b.Cells.DeleteCell(t.Context(), "a"); !fault.Is(err, fault.Conflict) {
		t.Errorf("DeleteCell of a cell in use = %v, want Conflict", err)
	}

	b.updateCell(t, placement.Cell{Name: "a", Region: "eu", Cordoned: true})
	target := f.reconcilePlacement(t).Migration.Target.Location
	if target.Cell != "b" {
		t.Fatalf("the tenant of a cordoned cell moves to %+v, want cell b", target)
	}
	b.wantTenants(t, "b", 2)
	f.setPartitionID(t, target, 42)
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: placement.Placement{Location: target, PartitionID: 42}})
	b.wantTenants(t, "a", 0)

	f.spec.Placement = placement.Preference{}
	f.apply(t)
	if home := f.reconcilePlacement(t).Migration.Target.Location; home.Cell != "" || home.Partition == "" {
		t.Fatalf("the tenant without a request moves to %+v, want the default cell", home)
	}
	f.spec.Placement = placement.Preference{Cell: "a"}
	f.apply(t)
	b.applyCell(t, placement.Cell{Name: "a"})
	if elsewhere := f.reconcilePlacement(t).Migration.Target.Location; elsewhere.Cell != "a" {
		t.Errorf("the tenant that requests another cell during a migration moves to %+v, want cell a", elsewhere)
	}
}

// refusesCell: without a cell that accepts it, a tenant stays where it is.
func refusesCell(c check) {
	t, b := c.t, c.Backend
	b.applyCell(t, placement.Cell{Name: "small", Region: "eu", Capacity: placement.CellUsage{Tenants: 1}})
	f, other := inCells(t, b, placement.Preference{Cell: "small"}), inCells(t, b, placement.Preference{Region: "eu"})
	at := f.ensurePlacement(t)
	if _, err := b.Store.EnsurePlacement(t.Context(), other.got.ID); !errors.Is(err, placement.ErrCellFull) {
		t.Errorf("EnsurePlacement in a full region = %v, want ErrCellFull", err)
	}
	other.wantPlacement(t, placement.State{})
	b.updateCell(t, placement.Cell{Name: "unknown", Region: "eu"}) // creates nothing
	f.spec.Placement = placement.Preference{Cell: "unknown"}
	f.apply(t)
	state, err := b.Store.ReconcilePlacement(t.Context(), f.got.ID)
	if !errors.Is(err, placement.ErrCellNotFound) || state.Current.Location != at || state.Migrating() {
		t.Errorf("ReconcilePlacement for an unknown cell = %+v, %v, want ErrCellNotFound and %+v", state, err, at)
	}
	if _, err := b.Store.Retire(t.Context(), f.spec.ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	b.Work(t)
	if err := tenant.Purge(t.Context(), b.Records, &dropRecorder{}, f.got.ID); err != nil {
		t.Fatal(err)
	}
	if got := other.ensurePlacement(t); got.Cell != "small" {
		t.Errorf("the cell with capacity again is not used: %+v", got)
	}
}
