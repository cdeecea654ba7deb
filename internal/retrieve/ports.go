package retrieve

import (
	"context"
	"errors"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Embedder turns text into vectors.
type Embedder interface {
	// Embed returns one L2-normalised vector per text, in order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names the model; Dimensions is the length of its vectors.
	Model() string
	Dimensions() int
}

// ErrNoPartition is in the chain of an Index's error when the placement is not
// there: never made, or lost. Partitions.Ensure makes it again.
var ErrNoPartition = errors.New("the partition is not in the vector store")

// Index is the vector store, read at bounded staleness. internal/milvus
// implements it. Every error is of kind Unavailable unless it is a bug.
type Index interface {
	// Search returns the best entries of the scope's user, best first.
	Search(ctx context.Context, scope tenant.Scope, p placement.Location, q Query, vector []float32) ([]Hit, error)
	// Upsert writes entries; those already there are replaced.
	Upsert(ctx context.Context, t tenant.ID, p placement.Location, entries []Entry) error
	// Delete removes entries; ids that are not there are no error.
	Delete(ctx context.Context, t tenant.ID, p placement.Location, ids []UnitID) error
	// List returns up to limit ids above after, in order, for the sweeper.
	List(ctx context.Context, t tenant.ID, p placement.Location, after UnitID, limit int) ([]UnitID, error)
	// Drop removes all that is in the place; nil when it is not there.
	Drop(ctx context.Context, p placement.Location) error
}

// Searcher is what PostgreSQL does for a search. internal/postgres implements it.
type Searcher interface {
	// Lexical returns the best units by words, best first.
	Lexical(ctx context.Context, scope tenant.Scope, q Query) ([]Hit, error)
	// Exact scores units against the vector beside the index: all of the
	// user's when they are few, else those whose place in the index is not
	// confirmed, or only just. See Coverage.
	Exact(ctx context.Context, scope tenant.Scope, q Query, vector []float32) ([]Hit, Coverage, error)
	// Score returns the cosine of each of the units that has a vector.
	Score(ctx context.Context, scope tenant.Scope, ids []UnitID, vector []float32) ([]Hit, error)
	// Resolve returns which of the units are live under the scope and the
	// query's filters, with their place; the order is not kept, Score is 0.
	Resolve(ctx context.Context, scope tenant.Scope, q Query, ids []UnitID) ([]Found, error)
}

// Coverage says what Searcher.Exact looked at.
type Coverage struct {
	All       bool // every unit of the user: the index need not be asked
	Truncated bool // more unconfirmed units than it will score: the newest were
	Missing   bool // some unit has no vector yet
}

// Units is what keeping the index in step needs of PostgreSQL.
// internal/postgres implements it.
type Units interface {
	Placements
	// Load returns those of the units that are live (active and not deleted),
	// with Dense and, where there is one, Vector filled in.
	Load(ctx context.Context, t tenant.ID, ids []UnitID) ([]OwnedUnit, error)
	// SaveVectors stores embeddings that were missing.
	SaveVectors(ctx context.Context, t tenant.ID, vectors map[UnitID][]float32) error
	// Confirm notes that the index holds these units, by the database's clock.
	Confirm(ctx context.Context, t tenant.ID, ids []UnitID) error
	// Live returns up to limit ids of live units above after, in order.
	Live(ctx context.Context, t tenant.ID, after UnitID, limit int) ([]UnitID, error)
}

// Placements is where the entries of a tenant belong, as PostgreSQL records it.
// internal/postgres implements it.
type Placements interface {
	// GetPlacement returns the tenant's placement; NotFound if it has none.
	GetPlacement(ctx context.Context, t tenant.ID) (placement.State, error)
	// AdvanceMigration records that all live units up to the cursor are in the
	// target of the migration. It returns false if another run has replaced this
	// one, or if the migration was cancelled.
	AdvanceMigration(ctx context.Context, t tenant.ID, run int64, cursor UnitID) (bool, error)
	// CompleteMigration makes the target the tenant's placement and commits the
	// job that drops the previous one. It does nothing if another run has
	// replaced this one.
	CompleteMigration(ctx context.Context, t tenant.ID, run int64) error
}

// OwnedUnit is a unit with its user.
type OwnedUnit struct {
	User tenant.UserID
	Unit
}

// SyncArgs are the arguments of the job that makes the index agree with the
// database about these units: live ones are there, others are not. It is
// committed in the transaction that changed them.
type SyncArgs struct {
	Tenant tenant.ID `json:"tenant"`
	Units  []UnitID  `json:"units"`
}

// Kind names the job.
func (SyncArgs) Kind() string { return "index.sync" }

// FillArgs are the arguments of the job that writes all of a tenant's units
// into the place that is being filled. Run tells one from those before it.
type FillArgs struct {
	Tenant tenant.ID `json:"tenant"`
	Run    int64     `json:"run"`
}

// Kind names the job.
func (FillArgs) Kind() string { return "index.fill" }

// EmptyArgs are the arguments of the job that empties a place nobody is in any
// more. Places are not given out twice.
type EmptyArgs struct {
	Collection string `json:"collection"`
	Partition  string `json:"partition"`
	Shared     bool   `json:"shared"`
}

// Kind names the job.
func (EmptyArgs) Kind() string { return "index.empty" }
