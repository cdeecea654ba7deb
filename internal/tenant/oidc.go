package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// OIDC lets users of an identity provider sign in without being listed: those
// with a verified address in one of the domains.
type OIDC struct {
	Issuer  string   // issuer identifier; "" for none
	Domains []string // lower case
	// Unassigned are domains that the platform administrator has not assigned. They
	// admit nobody, but users who signed in before keep their data.
	Unassigned []string
	// Removed are the addresses of users who have no access, lower case.
	Removed []string
}

// ExternalTokenLife is the lifetime of a token of a user of an identity provider.
const ExternalTokenLife = 90 * 24 * time.Hour

// RemovedUser is an address whose user has no access.
type RemovedUser struct {
	Email         string
	Administrator bool // removed by an administrator, not by the Tenant resource
	RemovedAt     time.Time
}

// ExternalUserInfo describes a user of an identity provider.
type ExternalUserInfo struct {
	Email, Name, Issuer string
	Active, Purging     bool
	CreatedAt           time.Time
	Sessions, Tokens    int64 // that are valid
}

// ExternalUser is a user whom an identity provider has authenticated.
type ExternalUser struct {
	Issuer  string
	Subject string // the provider's id of the user, never reassigned
	Email   string // verified by the provider
}

// Domain returns the domain of the address in lower case. It selects the tenant.
func (u ExternalUser) Domain() string {
	return strings.ToLower(u.Email[strings.LastIndexByte(u.Email, '@')+1:])
}

// UserName returns the name of the user, which is stable and contains a dash, so
// that no Tenant can list it. It is not derived from the address because
// providers may reassign addresses.
func (u ExternalUser) UserName() string {
	sum := sha256.Sum256([]byte(u.Issuer + "\x00" + u.Subject))
	return "oidc-" + hex.EncodeToString(sum[:8])
}

// ExternalSignIn is a sign-in through an identity provider.
type ExternalSignIn struct {
	ExternalUser
	Address  string // of the client
	Session  Hash   // of the new session's secret
	Lifetime time.Duration
	// AuthenticatedAt is when the provider authenticated the user; zero if unknown.
	AuthenticatedAt time.Time
}
