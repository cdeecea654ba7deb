package tenant

import (
	"context"
	"time"
)

// Store keeps tenants. internal/postgres implements it.
type Store interface {
	PlacementStore
	// Apply makes the stored tenant, its users and quotas equal to the spec
	// in one transaction and returns what is stored. A changed quota commits
	// the job that re-balances conversations with it. Users no longer listed
	// lose their tokens at once; their data goes by the deletion policy.
	// Writes nothing when nothing changed. Conflict when the name belongs to
	// a retained tenant that the spec does not claim.
	Apply(ctx context.Context, spec Spec) (Tenant, error)
	// Usage returns what the tenant holds.
	Usage(ctx context.Context, id ID) (Usage, error)
	// Retire ends a tenant: its tokens are revoked; with Retain its data is
	// kept, with Delete the purge job is committed. Idempotent; NotFound is nil.
	Retire(ctx context.Context, id ID, policy DeletionPolicy) (Remaining, error)
}

// Remaining counts what a purge has still to remove; all zero when it is done
// or when the data is retained.
type Remaining struct {
	Memories      int64
	Conversations int64
	Partition     bool
}

// Done reports whether nothing remains.
func (r Remaining) Done() bool { return r == Remaining{} }

// TokenStore keeps credentials by hash. internal/postgres implements it.
type TokenStore interface {
	// Install adds a credential beside the ones that are valid. Conflict when
	// its generation is not above the newest one: a revoked token never revives.
	Install(ctx context.Context, id ID, user string, c Credential) error
	// RevokeOlder ends every token of the user below the generation, once the
	// overlap has passed since that generation was installed: a call that comes
	// late makes no token live longer. Replicas drop them from their caches at
	// once.
	RevokeOlder(ctx context.Context, id ID, user string, generation int64, overlap time.Duration) error
	// Identify returns whom a token hash belongs to; Unauthorized when it is
	// unknown, revoked or expired.
	Identify(ctx context.Context, h Hash) (Identity, error)
}
