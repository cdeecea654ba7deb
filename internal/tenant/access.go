package tenant

import "context"

// AccessStore is what a user may see and do of their own access.
// internal/postgres implements it.
type AccessStore interface {
	// Token describes the user's newest token, its fingerprint "" when it was
	// revoked; nil when there never was one.
	Token(ctx context.Context, scope Scope) (*TokenInfo, error)
	// ReplaceToken makes a token of the user's own the only one that is valid:
	// those before end at once, on every replica. The operator hears of it,
	// empties the token in the user's Secret and says in the Tenant's status
	// that the user manages the token. Forbidden when the user has no access.
	ReplaceToken(ctx context.Context, scope Scope, h Hash) (TokenInfo, error)
}
