package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// OIDC says whose people may sign in without being listed: those an identity
// provider vouches for, with a verified address in one of the domains.
type OIDC struct {
	Issuer  string   // as the provider names itself; "" for none
	Domains []string // in lower case
}

// Person is somebody an identity provider vouches for.
type Person struct {
	Issuer  string
	Subject string // the provider's name for the person, never given to another
	Email   string // verified by the provider
}

// Domain is what of the address decides whose person it is, in lower case.
func (p Person) Domain() string {
	return strings.ToLower(p.Email[strings.LastIndexByte(p.Email, '@')+1:])
}

// UserName is the name of the person's user: always the same one, and none that
// a Tenant can list, because it has a dash. An address would not do: providers
// give it to somebody else one day.
func (p Person) UserName() string {
	sum := sha256.Sum256([]byte(p.Issuer + "\x00" + p.Subject))
	return "oidc-" + hex.EncodeToString(sum[:8])
}

// PersonSignIn is a person's sign-in through an identity provider.
type PersonSignIn struct {
	Person
	Address  string // where it comes from
	Session  Hash   // of the new session's secret
	Lifetime time.Duration
}
