package tenant

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// sessionSize is how many base62 digits a session's secret has, 190 bits.
const sessionSize = 32

// SignInName is what a person signs in to the dashboard under.
type SignInName struct {
	Namespace, Tenant, User string
}

// ParseSignInName reads namespace/tenant/user.
func ParseSignInName(s string) (SignInName, bool) {
	parts := strings.Split(strings.TrimSpace(s), "/")
	if len(parts) != 3 {
		return SignInName{}, false
	}
	for _, part := range parts {
		if part == "" || len(part) > 253 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			return SignInName{}, false
		}
	}
	return SignInName{parts[0], parts[1], parts[2]}, true
}

// String returns namespace/tenant/user.
func (n SignInName) String() string { return n.Namespace + "/" + n.Tenant + "/" + n.User }

// NewSession makes the secret that a session's cookie holds.
func NewSession(random io.Reader) (string, error) {
	digits, err := randomDigits(random, sessionSize)
	if err != nil {
		return "", fmt.Errorf("make session: %w", err)
	}
	return digits, nil
}

// SignIn is an attempt to sign in with a password.
type SignIn struct {
	Name     SignInName
	Password Hash
	Address  string // where it comes from; attempts from there are counted
	Session  Hash   // of the new session's secret
	Lifetime time.Duration
}

// Session is a person at the dashboard.
type Session struct {
	Identity
	Namespace   string
	DisplayName string // of the tenant; "" when it has none
	Email       string // of a user who is not listed; else ""
}

// Who is what to call the person.
func (s Session) Who() string { return cmp.Or(s.Email, s.UserName) }

// SignInName is what the person signed in under.
func (s Session) SignInName() SignInName { return SignInName{s.Namespace, s.TenantName, s.UserName} }

// SessionStore keeps who is signed in. internal/postgres implements it. A
// session ends with its lifetime, when it is ended, and at once when the user's
// password is replaced, the user is removed, or the tenant is suspended or
// retired.
type SessionStore interface {
	// SignIn begins a session. Unauthorized when no user has this name and
	// password, Forbidden when the tenant is suspended, RateLimited with the
	// time to wait when the account or the address failed too often, whichever
	// replicas were asked.
	SignIn(ctx context.Context, s SignIn) error
	// CountSignIn counts an attempt to sign in from an address, before it is known
	// how it ends; RateLimited with the time to wait when too many failed.
	CountSignIn(ctx context.Context, address string) error
	// SignInExternal begins a session of a user of an identity provider and
	// creates the user at the first sign-in. Forbidden if no tenant accepts the
	// domain, the tenant is suspended, or its user quota is exceeded. It resets the
	// failed attempts of the address.
	SignInExternal(ctx context.Context, s ExternalSignIn) error
	// Session returns whose a session is; Unauthorized when there is none.
	Session(ctx context.Context, h Hash) (Session, error)
	// EndSession ends a session, if it is there.
	EndSession(ctx context.Context, h Hash) error
}
