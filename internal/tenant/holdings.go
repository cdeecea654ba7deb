package tenant

import "context"

// Holdings are what a user holds of what the tenant does.
type Holdings struct {
	Tenant        Usage
	Memories      int64
	Conversations int64 // active ones
}

// HoldingStore says what is held. internal/postgres implements it.
type HoldingStore interface {
	// Holdings returns what the user and the tenant hold.
	Holdings(ctx context.Context, scope Scope) (Holdings, error)
}
