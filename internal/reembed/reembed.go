package reembed

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Phase is the state of a migration.
type Phase string

// The phases, as stored.
const (
	Copying     Phase = "copying"
	Canary      Phase = "canary"
	Completing  Phase = "completing"
	RollingBack Phase = "rolling back"
	Completed   Phase = "completed"
	RolledBack  Phase = "rolled back"
)

// Finished reports whether nothing remains to be done.
func (p Phase) Finished() bool { return p == Completed || p == RolledBack }

// Options are chosen when a migration starts.
type Options struct {
	CanaryPercent int           // users served with the new model during the canary
	CanaryFor     time.Duration // 0 skips the canary
	Rate          int           // texts embedded per second; 0 without a limit
	Force         bool          // complete it even if the new model finds less
}

// Migration is a migration of all tenants to another generation.
type Migration struct {
	Options
	ID         int64
	Target     placement.GenerationID
	Model      string // of the target
	Phase      Phase
	Reason     string // why it is rolled back
	Scores     Scores
	StartedAt  time.Time
	FinishedAt time.Time     // zero if unfinished
	PhaseAge   time.Duration // since the phase began
	Idle       time.Duration // since the latest progress
	// Tenants whose copy is not complete, is complete, and that have migrated.
	Pending, Ready, Migrated int64
}

// Args are the arguments of the job that drives the migration.
type Args struct{}

// Kind returns the job kind.
func (Args) Kind() string { return "embedding.migrate" }

// Store stores migrations. internal/postgres implements it.
type Store interface {
	placement.Store
	Migrations
	Targets
	Units
}

// Migrations stores the state of a migration.
type Migrations interface {
	// LatestEmbeddingMigration returns the unfinished migration or, without one, the
	// latest; NotFound if there was none.
	LatestEmbeddingMigration(ctx context.Context) (Migration, error)
	// BeatEmbeddingMigration records that the migration is being worked on.
	BeatEmbeddingMigration(ctx context.Context) error
	// ScoreEmbeddingMigration records the result of the probes.
	ScoreEmbeddingMigration(ctx context.Context, id int64, s Scores) error
	// EnterEmbeddingPhase changes the phase. All replicas drop the cached placements of
	// their users. It returns false if the migration is in none of the phases from.
	EnterEmbeddingPhase(ctx context.Context, m Migration, to Phase, reason string, from ...Phase) (bool, error)
}

// Targets stores the progress of each tenant.
type Targets interface {
	// ListPendingTenants returns tenants whose copy is not complete.
	ListPendingTenants(ctx context.Context, m Migration) ([]tenant.ID, error)
	// ListTargetTenants returns tenants with a placement in the target, complete or not,
	// or with vectors to clean up.
	ListTargetTenants(ctx context.Context) ([]tenant.ID, error)
	// EnsureEmbeddingTarget assigns a placement in the target to the tenant. It returns
	// the zero Next if the tenant needs none, and Conflict if the migration ended.
	EnsureEmbeddingTarget(ctx context.Context, m Migration, t tenant.ID) (placement.Next, error)
	// SetPartitionID is that of tenant.PlacementStore.
	SetPartitionID(ctx context.Context, t tenant.ID, at placement.Location, partitionID int64) error
	// AdvanceEmbeddingTarget records the progress of a copy. It returns false if the
	// placement was lost or the migration ended.
	AdvanceEmbeddingTarget(ctx context.Context, t tenant.ID, p placement.Placement, cursor retrieve.UnitID, ready bool) (bool, error)
	// CutOver makes the target the tenant's placement and commits the job that drops
	// the old one. A rebuild of the old one continues in the target, because it has to
	// confirm the units. It returns ErrIncomplete if the target is not complete.
	CutOver(ctx context.Context, t tenant.ID) error
	// DiscardTarget commits the job that drops the target.
	DiscardTarget(ctx context.Context, t tenant.ID) error
	// DeleteOtherVectors deletes the vectors that are not of the tenant's generation,
	// and the record of the target.
	DeleteOtherVectors(ctx context.Context, t tenant.ID) error
}

// Units reads the units of tenants.
type Units interface {
	// Live is that of indexing.Units.
	Live(ctx context.Context, t tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error)
	// SamplePools returns samples of units of the tenant that have vectors of both
	// generations, each of one user and kind.
	SamplePools(ctx context.Context, t tenant.ID, users, units int) ([]Pool, error)
}

// Indexer embeds units. indexing.Indexer implements it.
type Indexer interface {
	// Copy embeds the live units among ids for the target and writes them to it.
	Copy(ctx context.Context, t tenant.ID, target placement.Target, ids []retrieve.UnitID) error
	// CompareTarget repairs the differences between a target and the database, and
	// waits until it can be searched.
	CompareTarget(ctx context.Context, t tenant.ID, target placement.Target) error
}
