package tenant

import "context"

// Holdings are a user's share of the tenant's usage.
type Holdings struct {
	Tenant        Usage
	Memories      int64
	Conversations int64 // active ones
}

// HoldingStore reads the usage. internal/postgres implements it.
type HoldingStore interface {
	// Holdings returns the usage of the user and of the tenant.
	Holdings(ctx context.Context, scope Scope) (Holdings, error)
}
