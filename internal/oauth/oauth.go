package oauth

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// How long what is issued lives.
const (
	CodeLife    = time.Minute
	AccessLife  = 30 * time.Minute
	RefreshLife = 30 * 24 * time.Hour // since it was last refreshed
)

// Scope is the only one there is: the user's memories and chat history.
const Scope = "memory"

// The codes of errors (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; RFC 8707, 2).
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

// Client is a registered program. Whoever registered it said what it is called.
type Client struct {
	ID           string
	Name         string
	RedirectURIs []string
	CreatedAt    time.Time
}

// Grant is the access a user gives to a client.
type Grant struct {
	Client      string
	RedirectURI string // where the code is sent
	Challenge   string // S256 of the verifier the code is redeemed with
}

// Program is a client that has access, as its user sees it.
type Program struct {
	ID          string // of the grant
	Name        string
	RedirectURI string
	GivenAt     time.Time
	RefreshedAt time.Time // within AccessLife of when it was last used
}

// Tokens are what a client is given; the secrets are in no other place.
type Tokens struct {
	Access, Refresh string
	ExpiresIn       time.Duration // of Access
}

// Issued are the hashes of new tokens.
type Issued struct {
	Access, Refresh         tenant.Hash
	AccessLife, RefreshLife time.Duration
}

// ClientStore keeps clients. internal/postgres implements it.
type ClientStore interface {
	// CreateClient stores a client; RateLimited when the address registered
	// too many.
	CreateClient(ctx context.Context, c Client, address string) error
	// Client returns a client; NotFound.
	Client(ctx context.Context, id string) (Client, error)
}

// GrantStore keeps grants. internal/postgres implements it. A grant ends when it
// is ended, when it is not refreshed in time, and as sessions do: when the
// user's password is replaced, the user is removed, or the tenant is retired.
// It ends at once, on every replica.
type GrantStore interface {
	// CreateGrant stores a grant whose code lives for a while. Forbidden when
	// the session in which it is given has ended.
	CreateGrant(ctx context.Context, scope tenant.Scope, session tenant.Hash, g Grant, code tenant.Hash, life time.Duration) error
	// SpendSecret issues a grant's next tokens for its code or refresh token, which is
	// used up, if check allows it. NotFound for one that is unknown, expired, or
	// used before, which ends its grant: it was copied.
	SpendSecret(ctx context.Context, kind tenant.TokenKind, h tenant.Hash, check func(Grant) error, issued Issued) error
	// RevokeGrant ends the grant a token belongs to, if it is the client's; an
	// unknown token is nil.
	RevokeGrant(ctx context.Context, client string, kind tenant.TokenKind, h tenant.Hash) error
	// Programs returns those the user gave access to, the newest first.
	Programs(ctx context.Context, scope tenant.Scope) ([]Program, error)
	// EndGrant ends a user's grant; NotFound.
	EndGrant(ctx context.Context, scope tenant.Scope, id string) error
}

// AccessStore knows whose secrets are. internal/postgres implements it.
type AccessStore interface {
	// IdentifyHolder returns whom the hash of a secret of the kind belongs to;
	// Unauthorized when it is unknown, revoked or expired.
	IdentifyHolder(ctx context.Context, kind tenant.TokenKind, h tenant.Hash) (tenant.Identity, error)
}
