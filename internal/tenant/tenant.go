package tenant

import (
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// ID is a tenant's id: the uid of its Tenant resource, a lower-case UUID.
type ID string

// UserID is a user's number, unique across tenants.
type UserID int64

// DeletionPolicy determines what deleting the Tenant does to its data.
type DeletionPolicy string

// The deletion policies of the Tenant resource.
const (
	Retain DeletionPolicy = "Retain" // data is kept until adopted or purged
	Delete DeletionPolicy = "Delete" // rows, vectors and partition are purged
)

// Isolation determines how a tenant's vectors are isolated.
type Isolation string

// The isolations of the Tenant resource.
const (
	Partition Isolation = "Partition" // a separate Milvus partition
	Shared    Isolation = "Shared"    // a shared collection with a partition key, for small tenants
)

// Kind returns the kind of location in an index that provides the isolation.
func (i Isolation) Kind() placement.Kind {
	if i == Shared {
		return placement.Shared
	}
	return placement.Own
}

// Spec is the desired state the operator applies: the Tenant resource with
// the operator's defaults filled in.
type Spec struct {
	ID             ID
	Cluster        string // uid of the kube-system namespace
	Namespace      string
	Name           string
	DisplayName    string
	Suspended      bool
	DeletionPolicy DeletionPolicy
	Isolation      Isolation
	Placement      placement.Preference
	TokenOverlap   time.Duration
	Quota          Quota
	OIDC           OIDC
	// NamespaceUID is the uid of the namespace. Required to create or adopt a
	// tenant; see ErrNamespaceUIDRequired.
	NamespaceUID string
	Adopt        bool // adopt the retained data of the same name and namespace
	Users        []UserSpec
	Applications []ApplicationSpec
	// Administrators are names of listed users, and email addresses in lower case of users
	// of the identity provider.
	Administrators []string
}

// UserSpec is a user the Tenant resource lists.
type UserSpec struct {
	Name  string // unique within the tenant
	Email string // may be ""
}

// User is a user as stored.
type User struct {
	ID    UserID
	Name  string
	Email string
	// Token describes the newest token; nil before the first is installed.
	Token *TokenInfo
	// Unrevoked reports that an older token is valid without an expiry:
	// RevokeOlder has not run since the newest token was installed.
	Unrevoked bool
	// PasswordReplaced reports that the user replaced the password that was last
	// installed.
	PasswordReplaced bool
}

// Tenant is a tenant as stored.
type Tenant struct {
	ID        ID
	Namespace string
	Name      string
	Suspended bool
	Quota     Quota
	Placement placement.State // zero before EnsurePlacement
	Users     []User          // listed ones, by name
	// Applications are the holders of applications' keys, by name; see KeyHolder.
	Applications []User
	// RefusedUsers are listed users over Quota.Users, who have no access.
	RefusedUsers []string
	// ExternalUsers counts the users of the identity provider.
	ExternalUsers int64
	// DomainsTaken are those of the spec that belong to another tenant, by name.
	DomainsTaken []string
}

// Identity is the user a token belongs to, with the tenant's settings for the
// data path. Suspended tenants are identified too; authentication rejects their
// requests with 403.
type Identity struct {
	Scope
	Actor  Actor  // the user or application with the credential, for the audit log
	Access Access // what the credential may do
	// Application is the application of an application key; nil for a user. The scope of a
	// key is that of an empty account until ApplicationUserStore.ActFor replaces it.
	Application *Application
	TenantName  string
	UserName    string
	Suspended   bool
	Quota       Quota
	Placement   placement.Location
	Generation  placement.GenerationID // of the vectors that serve the user
	// ExpiresAt is the expiry of an older token during the overlap; zero for
	// the current one.
	ExpiresAt time.Time
}

// Refused returns the names of the listed users that are not among the stored ones.
func (s Spec) Refused(stored []User) (names []string) {
	exists := make(map[string]bool, len(stored))
	for _, u := range stored {
		exists[u.Name] = true
	}
	for _, u := range s.Users {
		if !exists[u.Name] {
			names = append(names, u.Name)
		}
	}
	return names
}
