package tenant

import "context"

// AccessStore manages the token and the password that each user has from the start;
// UserTokenStore is about other tokens.
// internal/postgres implements it.
type AccessStore interface {
	// Token describes the user's newest token. Its fingerprint is empty if it
	// was revoked. Token returns nil if the user never had one.
	Token(ctx context.Context, scope Scope) (*TokenInfo, error)
	// ReplaceToken installs a token that the user generated and revokes all
	// earlier ones immediately, on every replica. It notifies the operator,
	// which removes the token from the user's Secret and reports in the
	// Tenant's status that the user manages the token. Forbidden if the user
	// has no access.
	ReplaceToken(ctx context.Context, scope Scope, h Hash) (TokenInfo, error)
	// ReplacePassword installs a password that was generated for the user. The
	// session stays valid; everything else that began under the old password
	// ends immediately, on every replica: other sessions, created tokens and
	// grants. It notifies the operator, which removes the password from the user's
	// Secret. Unauthorized if the session has ended or the user has no password,
	// Forbidden if the user has no access.
	ReplacePassword(ctx context.Context, scope Scope, session, password Hash) error
}
