package tenanttest

import (
	"context"
	"maps"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// ApplyCell implements placement.CellStore.
func (f *Fake) ApplyCell(_ context.Context, c placement.Cell) (err error) {
	defer f.begin("ApplyCell", &err)()
	if err == nil {
		f.cells[c.Name] = c
	}
	return err
}

// UpdateCell implements placement.CellStore.
func (f *Fake) UpdateCell(_ context.Context, c placement.Cell) (err error) {
	defer f.begin("UpdateCell", &err)()
	if _, ok := f.cells[c.Name]; err == nil && ok {
		f.cells[c.Name] = c
	}
	return err
}

// CellUsage implements placement.CellStore. A memory or conversation is a unit.
func (f *Fake) CellUsage(_ context.Context, name string) (usage placement.CellUsage, leaving int64, err error) {
	defer f.begin("CellUsage", &err)()
	if err != nil {
		return usage, 0, err
	}
	return f.cellUsage(name), f.leaving(name), nil
}

// DeleteCell implements placement.CellStore.
func (f *Fake) DeleteCell(_ context.Context, name string) (err error) {
	defer f.begin("DeleteCell", &err)()
	if err != nil {
		return err
	}
	if f.cellUsage(name).Tenants+f.leaving(name) > 0 {
		return fault.New(fault.Conflict, "cell %s is in use", name)
	}
	delete(f.cells, name)
	return nil
}

// Ping implements controllers.CellPinger. Every cell is reachable.
func (f *Fake) Ping(_ context.Context, _ string, _ placement.Connection) (err error) {
	defer f.begin("Ping", &err)()
	return err
}

// Cell returns a stored cell; false if there is none.
func (f *Fake) Cell(name string) (placement.Cell, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.cells[name]
	return c, ok
}

func (f *Fake) cellUsage(name string) (usage placement.CellUsage) {
	for _, r := range f.rows {
		if slices.ContainsFunc(r.placement.Locations(), func(at placement.Location) bool { return at.Cell == name }) {
			usage.Tenants++
			usage.Units += r.usage.Memories + r.usage.Conversations
		}
	}
	return usage
}

// leaving counts the locations of a cell that were created and belong to no tenant.
func (f *Fake) leaving(name string) (n int64) {
	for at, exists := range f.partitions {
		if exists && at.Cell == name && !f.used(at) {
			n++
		}
	}
	return n
}

func (f *Fake) used(at placement.Location) bool {
	for _, r := range f.rows {
		if slices.Contains(r.placement.Locations(), at) {
			return true
		}
	}
	return false
}

// selectCell returns the cell for a tenant.
func (f *Fake) selectCell(r *row) (string, error) {
	if f.wantedKind(r) == placement.Unindexed {
		return "", nil
	}
	cells := slices.Collect(maps.Values(f.cells))
	if name, ok := r.spec.Placement.Stay(cells, r.placement); ok {
		return name, nil
	}
	for i := range cells {
		cells[i].Usage = f.cellUsage(cells[i].Name)
	}
	return r.spec.Placement.Select(cells)
}
