package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// Access is a set of scopes: what a credential may do.
type Access uint8

// The scopes.
const (
	AccessRead   Access = 1 << iota // read, search and export data
	AccessWrite                     // create, change and delete data
	AccessAdmin                     // list, measure and erase the users of applications, with an application key
	AccessTokens                    // manage the user's own tokens, with a token of the user
)

// FullAccess is the access of a user.
const FullAccess = AccessRead | AccessWrite | AccessTokens

// accessNames are the names of the scopes in resources, requests and errors, in order. The scope
// admin is about users with an application key, and about tokens with a user's token.
var accessNames = []struct {
	access Access
	name   string
}{{AccessRead, "read"}, {AccessWrite, "write"}, {AccessAdmin | AccessTokens, "admin"}}

// KeyAccess returns the access of an application key with the named scopes.
func KeyAccess(names []string) Access { return accessOf(names) &^ AccessTokens }

// TokenAccess returns the access of a user's token with the named scopes.
func TokenAccess(names []string) Access { return accessOf(names) &^ AccessAdmin }

// accessOf returns the access with the named scopes. Unknown names give none.
func accessOf(names []string) (a Access) {
	for _, n := range accessNames {
		if slices.Contains(names, n.name) {
			a |= n.access
		}
	}
	return a
}

// Names returns the names of the scopes.
func (a Access) Names() []string {
	names := []string{}
	for _, n := range accessNames {
		if a&n.access != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// InsufficientScope is the error of a request whose credential lacks a scope. Its kind is
// fault.Forbidden.
type InsufficientScope struct{ Required Access }

// Error implements error.
func (e InsufficientScope) Error() string {
	switch {
	case e.Required&AccessAdmin != 0:
		return "an application key with the scope admin is required"
	case e.Required&AccessTokens != 0:
		return "a user's token with the scope admin is required"
	}
	return fmt.Sprintf("the key or token does not have the scope %s", strings.Join(e.Required.Names(), " and "))
}

// Unwrap returns a fault of kind Forbidden with the same message.
func (e InsufficientScope) Unwrap() error { return fault.New(fault.Forbidden, "%s", e.Error()) }

// Require returns InsufficientScope unless the access includes all required scopes.
func (a Access) Require(required Access) error {
	if missing := required &^ a; missing != 0 {
		return InsufficientScope{missing}
	}
	return nil
}

// ApplicationSpec is an application that the Tenant resource lists.
type ApplicationSpec struct {
	Name              string // unique within the tenant
	Scopes            []string
	Origins           []string // of web pages that may use the key
	RequestsPerMinute int64    // NoLimit for only the tenant's
}

// Application is the application of an identity.
type Application struct {
	ID                UserID // of the row that holds its keys
	Name              string
	Origins           []string
	RequestsPerMinute int64 // NoLimit for only the tenant's
}

// The prefixes of stored names. They contain a dash, so that no Tenant can list such a
// user, and no name of one kind is one of another kind.
const (
	keyPrefix             = "key-"
	applicationUserPrefix = "app-"
)

// KeyHolder returns the stored name of the user that holds an application's keys.
func KeyHolder(application string) string { return keyPrefix + application }

// ApplicationOf returns the application whose keys the user holds, if it does.
func ApplicationOf(user string) (name string, ok bool) { return strings.CutPrefix(user, keyPrefix) }

// StoredUser returns the stored name of a user of applications.
func StoredUser(name string) string { return applicationUserPrefix + name }

// UserOfApplication is the reverse of StoredUser.
func UserOfApplication(stored string) string {
	return strings.TrimPrefix(stored, applicationUserPrefix)
}

// MaxApplicationUser is the length limit of the name of a user of applications, bytes.
const MaxApplicationUser = 256

// CheckApplicationUser returns Invalid, naming the field, unless an application may use the name for a user. It is the only
// rule: a name that one request accepts can be used in every other.
func CheckApplicationUser(field, name string) error {
	if err := CheckUserPosition(field, name); err != nil {
		return err
	}
	switch {
	case textrule.IsBlank(name):
		return fault.New(fault.Invalid, "%s must not be blank", field)
	case strings.TrimSpace(name) != name: // a header cannot contain it
		return fault.New(fault.Invalid, "%s must not begin or end with a space", field)
	case name == "*":
		return fault.New(fault.Invalid, "%s must not be *, which selects every user in a filter", field)
	case name == "." || name == "..":
		return fault.New(fault.Invalid, "%s must not be . or .., which are not usable in a URL", field)
	}
	return nil
}

// CheckUserPosition returns Invalid, naming the field, unless the name can be that of a stored user of applications. Earlier
// versions stored users with names that CheckApplicationUser refuses: they can be listed, read and erased.
func CheckUserPosition(field, name string) error {
	switch {
	case name == "":
		return fault.New(fault.Invalid, "%s must not be empty", field)
	case len(name) > MaxApplicationUser:
		return fault.New(fault.Invalid, "%s must be at most %d bytes", field, MaxApplicationUser)
	case !utf8.ValidString(name):
		return fault.New(fault.Invalid, "%s must be UTF-8", field)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fault.New(fault.Invalid, "%s must not contain control characters", field)
	}
	return nil
}

// NoUser is the user of a request that reads for a user who does not exist. It owns
// nothing.
const NoUser UserID = 0

// ApplicationUser is a user of applications with its usage.
type ApplicationUser struct {
	Name          string
	Memories      int64
	Conversations int64 // active ones
	CreatedAt     time.Time
}

// ActingUser is the user for whom an application acts.
type ActingUser struct {
	Scope
	Placement  placement.Location
	Generation placement.GenerationID // of the vectors that serve the user
}

// ApplicationUserStore stores the users of applications. All applications of a tenant have
// the same users. internal/postgres implements it.
type ApplicationUserStore interface {
	// ActFor returns the user of a name. If there is none, it creates the user, or without
	// create returns one whose id is NoUser. QuotaExceeded if the tenant's user quota is
	// reached.
	ActFor(ctx context.Context, application Identity, name string, create bool) (ActingUser, error)
	// ApplicationUsers returns up to limit users after a name, in the order of their names.
	ApplicationUsers(ctx context.Context, application Identity, after string, limit int) ([]ApplicationUser, error)
	// ApplicationUser returns the user of a name; NotFound if there is none.
	ApplicationUser(ctx context.Context, application Identity, name string) (ApplicationUser, error)
	// EraseApplicationUser ends the access to the user's data, notifies every replica and commits the
	// job that deletes it. NotFound if there is no such user.
	EraseApplicationUser(ctx context.Context, application Identity, name string) error
	// MemoryOwners returns the name of the user who owns each of the memories, except for
	// those that do not exist or do not belong to a user of applications. It returns
	// AmbiguousOwner if several users own one of them.
	MemoryOwners(ctx context.Context, application Identity, memories []string) (map[string]string, error)
	// AllowedOrigins returns the origins that the applications of all tenants allow.
	AllowedOrigins(ctx context.Context) ([]string, error)
}

// AmbiguousOwner returns the error for a memory whose id several users of applications own: a restore keeps the ids of an export.
func AmbiguousOwner(memory string) error {
	return fault.New(fault.Conflict, "several users have a memory %s: name one with header X-Mnemo-User", memory)
}
