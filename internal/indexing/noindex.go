package indexing

import (
	"context"
	"log/slog"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// NoIndex is the Index, and the placement.Partitions, of a process that is not connected to a
// vector store. Calls for a tenant that has not left its index yet return Unavailable, so that
// another process, or a later one, does the work.
type NoIndex struct{ Log *slog.Logger }

var (
	_ Store                = NoIndex{}
	_ placement.Partitions = NoIndex{}
)

var errNoIndex = fault.New(fault.Unavailable, "the tenant's vectors are in Milvus, which is not configured")

// Search returns Unavailable.
func (NoIndex) Search(context.Context, tenant.Scope, placement.Location, retrieve.Request, []float32) ([]retrieve.Hit, error) {
	return nil, errNoIndex
}

// Upsert returns Unavailable.
func (NoIndex) Upsert(context.Context, tenant.ID, placement.Location, []Entry) error {
	return errNoIndex
}

// Delete returns Unavailable.
func (NoIndex) Delete(context.Context, tenant.ID, placement.Location, []retrieve.UnitID) error {
	return errNoIndex
}

// List returns Unavailable.
func (NoIndex) List(context.Context, tenant.ID, placement.Location, retrieve.UnitID, int) ([]retrieve.UnitID, error) {
	return nil, errNoIndex
}

// ListUser returns Unavailable.
func (NoIndex) ListUser(context.Context, tenant.Scope, placement.Location, retrieve.UnitID, int) ([]retrieve.UnitID, error) {
	return nil, errNoIndex
}

// Ensure returns Unavailable.
func (NoIndex) Ensure(context.Context, placement.Placement) (int64, error) { return 0, errNoIndex }

// Drop logs that the entries remain in the vector store: nothing waits for one that may have
// been deleted.
func (x NoIndex) Drop(ctx context.Context, p placement.Location) error {
	x.Log.WarnContext(ctx, "vectors remain in Milvus, which is not configured; delete its data", "cell", p.Cell, "collection", p.Collection, "partition", p.Partition)
	return nil
}

// Close does nothing.
func (NoIndex) Close() error { return nil }
