package oauth

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Lifetimes of codes and tokens.
const (
	CodeLife    = time.Minute
	AccessLife  = 30 * time.Minute
	RefreshLife = 30 * 24 * time.Hour // since the last refresh
	GrantLife   = 90 * 24 * time.Hour // since the user allowed access
)

// Scope is the only scope: the user's memories and chat history.
const Scope = "memory"

// The error codes (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; RFC 8707, 2).
const (
	InvalidRequest      = "invalid_request"
	InvalidClient       = "invalid_client"
	InvalidGrant        = "invalid_grant"
	InvalidTarget       = "invalid_target"
	InvalidRedirect     = "invalid_redirect_uri"
	InvalidMetadata     = "invalid_client_metadata"
	AccessDenied        = "access_denied"
	UnsupportedGrant    = "unsupported_grant_type"
	UnsupportedResponse = "unsupported_response_type"
)

// Error is an error response to a client.
type Error struct {
	Code        string
	Description string
}

// Error returns the description.
func (e *Error) Error() string { return e.Description }

// Client is a registered client. Its name is chosen at registration and not
// verified.
type Client struct {
	ID           string
	Name         string
	RedirectURIs []string
	CreatedAt    time.Time
}

// Grant is the access of a client to a user's data.
type Grant struct {
	Client      string
	RedirectURI string // receives the code
	Challenge   string // S256 hash of the code verifier
}

// ConnectedApp is a client with access, as shown to its user.
type ConnectedApp struct {
	ID          string // id of the grant
	Client      string // id of the client
	Name        string
	RedirectURI string
	GivenAt     time.Time
	RefreshedAt time.Time // at most AccessLife before its last use
}

// Tokens are the tokens issued to a client. They are not stored.
type Tokens struct {
	Access, Refresh string
	ExpiresIn       time.Duration // of Access
}

// Issued are the hashes of new tokens.
type Issued struct {
	Access, Refresh         tenant.Hash
	AccessLife, RefreshLife time.Duration
}

// ClientStore stores clients. internal/postgres implements it.
type ClientStore interface {
	// CreateClient stores a client; RateLimited after too many registrations
	// from the address.
	CreateClient(ctx context.Context, c Client, address string) error
	// Client returns a client; NotFound if it does not exist.
	Client(ctx context.Context, id string) (Client, error)
}

// GrantStore stores grants. internal/postgres implements it. A grant ends when
// it is revoked or not refreshed in time, and in the cases in which sessions
// end: the user's password is replaced, the user is removed, or the tenant is
// retired. It ends immediately, on every replica.
type GrantStore interface {
	// CreateGrant stores a grant with a short-lived code. Forbidden if the
	// session of the user has ended.
	CreateGrant(ctx context.Context, scope tenant.Scope, session tenant.Hash, g Grant, code tenant.Hash, life time.Duration) error
	// SpendSecret consumes a code or refresh token and issues the grant's next
	// tokens, if check allows it. NotFound if the secret is unknown, expired or
	// was used before. Reuse means that it was copied, and ends the grant.
	SpendSecret(ctx context.Context, kind tenant.TokenKind, h tenant.Hash, check func(Grant) error, issued Issued) error
	// RevokeGrant ends the grant of a token if it belongs to the client; nil
	// for an unknown token.
	RevokeGrant(ctx context.Context, client string, kind tenant.TokenKind, h tenant.Hash) error
	// ConnectedApps returns the clients with access to the user's data, newest
	// first.
	ConnectedApps(ctx context.Context, scope tenant.Scope) ([]ConnectedApp, error)
	// EndGrant ends a grant of the user; NotFound.
	EndGrant(ctx context.Context, scope tenant.Scope, id string) error
}

// AccessStore identifies the holders of secrets. internal/postgres implements
// it.
type AccessStore interface {
	// IdentifyHolder returns the identity of a hash of a secret of the kind;
	// Unauthorized if it is unknown, revoked or expired.
	IdentifyHolder(ctx context.Context, kind tenant.TokenKind, h tenant.Hash) (tenant.Identity, error)
}
