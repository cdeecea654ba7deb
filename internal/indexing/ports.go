package indexing

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Store is the vector store. internal/milvus implements it. Every error is of kind Unavailable unless it is a bug. It
// is not called with locations in no index.
type Store interface {
	// Upsert writes entries and replaces existing ones.
	Upsert(ctx context.Context, t tenant.ID, p placement.Location, entries []Entry) error
	// Delete removes entries; missing ids are not an error.
	Delete(ctx context.Context, t tenant.ID, p placement.Location, ids []retrieve.UnitID) error
	// List returns up to limit ids above after, in order, for the sweeper.
	List(ctx context.Context, t tenant.ID, p placement.Location, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error)
	// Drop removes all entries of the location. A missing location is not an error.
	Drop(ctx context.Context, p placement.Location) error
}

// Units is the database side of synchronization. internal/postgres implements it.
type Units interface {
	Placements
	// Load returns the units that are live (active and not deleted), with Dense and
	// Vectors.
	Load(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) ([]OwnedUnit, error)
	// SaveVectors stores missing embeddings of a generation, and confirms units as Confirm does: those of confirmed
	// or, if the tenant is in no index, those embedded. The latter have an ID, Dense and Vector. Units of other users
	// are not changed.
	SaveVectors(ctx context.Context, t tenant.ID, users []tenant.UserID, g placement.GenerationID, embedded []retrieve.Unit, confirmed []retrieve.UnitID) error
	// Confirm records the database time at which the index contained these units of the users, or at
	// which they had a vector if the tenant is in no index. In the same transaction, it records
	// that the tenant has outgrown exact scoring if the user of one of them has more than
	// placement.ExactUnits live units of a kind. Units of other users are not changed.
	Confirm(ctx context.Context, t tenant.ID, users []tenant.UserID, ids []retrieve.UnitID) error
	// Unconfirmed returns up to limit ids of live units above after that were not
	// confirmed, in order.
	Unconfirmed(ctx context.Context, t tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error)
	// CountConfirmed counts the live ones of these units that were confirmed more than a minute ago.
	CountConfirmed(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) (int, error)
	// Live returns up to limit ids of live units above after, in order.
	Live(ctx context.Context, t tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error)
	// LiveOf returns the live ones of these units, in no particular order.
	LiveOf(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) ([]retrieve.UnitID, error)
}

// Placements is where the entries of a tenant belong, as PostgreSQL records it.
// internal/postgres implements it.
type Placements interface {
	// GetPlacement returns the tenant's placement; NotFound if it has none.
	GetPlacement(ctx context.Context, t tenant.ID) (placement.State, error)
	// AdvanceMigration records that all live units up to the cursor are in the
	// target of the migration. It returns false if another run has replaced this
	// one, or if the migration was canceled.
	AdvanceMigration(ctx context.Context, t tenant.ID, run int64, cursor retrieve.UnitID) (bool, error)
	// CompleteMigration makes the target the tenant's placement and commits the
	// job that drops the previous one. It does nothing if another run has
	// replaced this one.
	CompleteMigration(ctx context.Context, t tenant.ID, run int64) error
}

// Entry is a unit as stored in the index.
type Entry struct {
	ID     retrieve.UnitID
	User   int64
	Kind   retrieve.Kind
	Group  int64
	Vector []float32
}

// OwnedUnit is a unit with its user and its vectors. Vector is not set.
type OwnedUnit struct {
	User tenant.UserID
	retrieve.Unit
	Vectors map[placement.GenerationID][]float32
}

// SyncArgs are the arguments of the job that synchronizes these units with the index:
// live ones are added, others removed. The job is committed in the transaction that
// changed them.
type SyncArgs struct {
	Tenant tenant.ID         `json:"tenant"`
	Units  []retrieve.UnitID `json:"units"`
}

// Kind returns the job kind.
func (SyncArgs) Kind() string { return "index.sync" }

// MigrateArgs are the arguments of the job that copies a tenant's units into the target of
// its migration. Run identifies the current run.
type MigrateArgs struct {
	Tenant tenant.ID `json:"tenant"`
	Run    int64     `json:"run"`
}

// Kind returns the job kind.
func (MigrateArgs) Kind() string { return "placement.migrate" }

// DropArgs are the arguments of the job that drops a location that is no longer used.
// Locations are never reused.
type DropArgs struct {
	Cell       string `json:"cell,omitempty"` // missing in jobs of releases without cells
	Collection string `json:"collection"`
	Partition  string `json:"partition"`
	Shared     bool   `json:"shared"`
}

// DropArgsOf returns the arguments for a location.
func DropArgsOf(at placement.Location) DropArgs {
	return DropArgs{Cell: at.Cell, Collection: at.Collection, Partition: at.Partition, Shared: at.Shared}
}

// Location returns the location to drop.
func (a DropArgs) Location() placement.Location {
	return placement.Location{Cell: a.Cell, Collection: a.Collection, Partition: a.Partition, Shared: a.Shared}
}

// Kind returns the job kind.
func (DropArgs) Kind() string { return "placement.drop" }
