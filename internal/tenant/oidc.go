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
}
