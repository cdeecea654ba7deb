package tenant

import (
	"errors"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// ErrNamespaceUIDRequired is the error of Apply for a new tenant, and for one whose
// namespace is not recorded, if the spec has no NamespaceUID.
var ErrNamespaceUIDRequired = errors.New("the uid of the namespace is required")

// Owner identifies the namespace whose Tenants may adopt retained data.
type Owner struct {
	Cluster      string // uid of the kube-system namespace; "" to leave it unchanged
	NamespaceUID string
}

// ConflictReason says why a name cannot be used.
type ConflictReason string

// The reasons of NameConflict.
const (
	NameInUse        ConflictReason = "NameInUse"        // another resource owns the tenant of the name
	NamePurging      ConflictReason = "NamePurging"      // the tenant of the name is being purged
	AdoptionRequired ConflictReason = "AdoptionRequired" // the name has retained data, and the spec does not adopt it
	AdoptionRefused  ConflictReason = "AdoptionRefused"  // the retained data belongs to another namespace
)

// NameConflict is the error of Apply if the name belongs to another tenant. Its kind
// is fault.Conflict.
type NameConflict struct {
	Reason ConflictReason
	Spec   Spec
	Owner  ID // resource of the other tenant, for NameInUse
}

// Error implements error.
func (e NameConflict) Error() string {
	switch e.Reason {
	case NamePurging:
		return "the data of the deleted tenant of this name is still being purged; will be retried"
	case AdoptionRequired:
		return "the data of a deleted tenant of this name is retained: set spec.adoption.policy to SameName to adopt it, or choose another name"
	case AdoptionRefused:
		return fmt.Sprintf("the retained data of this name belongs to a deleted namespace or another cluster: choose another name, or ask "+
			"the platform administrator to run `mnemo tenants reassign %s/%s --namespace-uid %s`",
			e.Spec.Namespace, e.Spec.Name, e.Spec.NamespaceUID)
	case NameInUse:
	}
	return fmt.Sprintf("the name belongs to tenant %s", e.Owner)
}

// Unwrap returns a fault of kind Conflict with the same message.
func (e NameConflict) Unwrap() error { return fault.New(fault.Conflict, "%s", e.Error()) }
