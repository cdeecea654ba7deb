package tenant

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// SignInName is the name with which a user signs in to the dashboard. Namespace is empty
// if the user did not enter one: the password then decides between tenants of one name.
type SignInName struct {
	Namespace, Tenant, User string
}

// ParseSignInName parses namespace/tenant/user or tenant/user.
func ParseSignInName(s string) (SignInName, bool) {
	parts := strings.Split(strings.TrimSpace(s), "/")
	for _, part := range parts {
		if part == "" || len(part) > 253 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			return SignInName{}, false
		}
	}
	switch len(parts) {
	case 2:
		return SignInName{Tenant: parts[0], User: parts[1]}, true
	case 3:
		return SignInName{parts[0], parts[1], parts[2]}, true
	default:
		return SignInName{}, false
	}
}

// String returns namespace/tenant/user, or tenant/user without a namespace.
func (n SignInName) String() string {
	if n.Namespace == "" {
		return n.Tenant + "/" + n.User
	}
	return n.Namespace + "/" + n.Tenant + "/" + n.User
}

// NewSession returns a new secret for a session cookie or a sign-in link: the database cell
// as 3 hexadecimal digits, and 29 random base62 digits.
func NewSession(cell DatabaseCell, random io.Reader) (string, error) {
	digits, err := newSecret(cell, random)
	if err != nil {
		return "", fmt.Errorf("generate session: %w", err)
	}
	return digits, nil
}

// SignIn is an attempt to sign in with a password.
type SignIn struct {
	Name     SignInName
	Password Hash
	Address  string // of the client; attempts are counted per address
	Session  Hash   // of the new session's secret
	Lifetime time.Duration
}

// SignInLink is a one-time link that signs a user in.
type SignInLink struct {
	Scope
	Secret   Hash
	Lifetime time.Duration
}

// LinkSignIn is an attempt to sign in with a one-time link.
type LinkSignIn struct {
	Link     Hash
	Address  string // of the client; attempts are counted per address
	Session  Hash   // of the new session's secret
	Lifetime time.Duration
}

// Session is a signed-in user of the dashboard.
type Session struct {
	Identity
	Namespace   string
	DisplayName string // of the tenant; may be ""
	Email       string // of an external user; else ""
	Issuer      string // the identity provider of an external user; else ""
	// Administrator is set if the user administers the tenant.
	Administrator bool
	// AuthenticatedAt is when the user proved their identity; zero if unknown.
	AuthenticatedAt time.Time
}

// Who returns the name to display for the user.
func (s Session) Who() string { return cmp.Or(s.Email, s.UserName) }

// SignInName returns the name with which the user signed in.
func (s Session) SignInName() SignInName { return SignInName{s.Namespace, s.TenantName, s.UserName} }

// SessionStore stores sessions. internal/postgres implements it; the dashboard may not import
// that package. A session ends
// when it expires or is ended, and immediately when the user's password is
// replaced, the user is removed, or the tenant is suspended or retired.
type SessionStore interface {
	// SignIn creates a session. Unauthorized for an incorrect name or password,
	// Forbidden if the tenant is suspended, RateLimited with the time to wait
	// after too many failed attempts of the account or the address on any
	// replica.
	SignIn(ctx context.Context, s SignIn) error
	// CountSignIn counts a sign-in attempt from an address before its outcome
	// is known; RateLimited with the time to wait after too many failures.
	CountSignIn(ctx context.Context, address string) error
	// SignInWithLink creates a session and ends the link. Unauthorized if it was used,
	// has expired or never existed.
	SignInWithLink(ctx context.Context, s LinkSignIn) error
	// SignInExternal begins a session of a user of an identity provider and
	// creates the user at the first sign-in. Forbidden if no tenant accepts the
	// domain, the tenant is suspended, or its user quota is exceeded. It resets the
	// failed attempts of the address.
	SignInExternal(ctx context.Context, s ExternalSignIn) error
	// Session returns the session with the hash; Unauthorized if there is none.
	Session(ctx context.Context, h Hash) (Session, error)
	// EndSession ends a session. It does nothing if there is none.
	EndSession(ctx context.Context, h Hash) error
}
