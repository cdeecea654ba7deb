package tenant

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// Store stores tenants. internal/postgres implements it.
type Store interface {
	PlacementStore
	// Apply updates the stored tenant, its users and its quotas to the spec in
	// one transaction and returns the result. A changed quota commits the job
	// that re-balances conversations. Users who are no longer listed lose their
	// tokens immediately; the deletion policy determines what happens to their
	// data. Writes nothing if nothing changed. NameConflict if the name belongs to
	// another tenant, unless that one is retained and either empty or adopted.
	Apply(ctx context.Context, spec Spec) (Tenant, error)
	// Usage returns the tenant's usage.
	Usage(ctx context.Context, id ID) (Usage, error)
	// Retire revokes the tokens of a tenant. With Retain its data is kept, with
	// Delete the purge job is committed. Idempotent; nil for an unknown tenant.
	Retire(ctx context.Context, id ID, policy DeletionPolicy) (Remaining, error)
}

// Remaining counts the data that a purge has not deleted yet. It is zero when
// the purge is complete or the data is retained.
type Remaining struct {
	Memories      int64
	Conversations int64
	// Record is true until the tenant's record is deleted, which follows its
	// rows and locations.
	Record bool
	// Locations hold the tenant's vectors.
	Locations []placement.Location
	// Failure is set if the purge has failed repeatedly. It will be retried.
	Failure PurgeFailure
}

// PurgeFailure describes the latest failure of a purge, without the text of a driver's error.
type PurgeFailure struct {
	Attempts int    // that failed
	Job      int64  // whose failures the log has
	SQLState string // the error code of PostgreSQL, "" for other errors
}

// Done reports whether nothing remains.
func (r Remaining) Done() bool { return !r.Record }

// TokenStore stores credentials as hashes. internal/postgres implements it.
type TokenStore interface {
	// Install adds a credential beside the valid ones. Conflict if its
	// generation is not greater than the newest, so that a revoked token is
	// never reinstalled.
	Install(ctx context.Context, id ID, user string, c Credential) error
	// RevokeOlder ends every token of the user below the generation, an overlap
	// after that generation was installed. A late call does not extend a
	// token's validity. Replicas drop the tokens from their caches immediately.
	RevokeOlder(ctx context.Context, id ID, user string, generation int64, overlap time.Duration) error
	// Identify returns the identity of a token hash; Unauthorized if it is
	// unknown, revoked or expired.
	Identify(ctx context.Context, h Hash) (Identity, error)
}
