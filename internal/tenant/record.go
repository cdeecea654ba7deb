package tenant

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// State is the state of a tenant's rows.
type State string

// The states of a tenant.
const (
	Active   State = "active"
	Retained State = "retained" // no token is valid; data is kept until adopted or purged
	Purging  State = "purging"  // data is being deleted; cannot be undone
)

// Record is a stored tenant, whether or not its Tenant resource exists.
type Record struct {
	ID        ID
	Resource  ID     // uid of the current Tenant resource; differs from ID after an adoption
	Cluster   string // uid of the kube-system namespace of that Tenant's cluster
	Namespace string
	Name      string
	// NamespaceUID is the namespace whose Tenants may adopt the data.
	NamespaceUID string
	State        State
	Policy       DeletionPolicy // at the time of retirement; before, the current one
	RetiredAt    time.Time      // zero while it is active
	Usage        Usage
	Placement    placement.Location // zero before EnsurePlacement
	Target       placement.Location // of the migration or rebuild; zero for none
}

// RecordsOf filters records; an empty field matches all.
type RecordsOf struct{ Cluster, Namespace, Name string }

// RecordStore manages stored tenants whose Tenant resource may not exist.
// internal/postgres implements it.
type RecordStore interface {
	PurgeStore
	// Records returns the matching records, by namespace and name.
	Records(ctx context.Context, of RecordsOf) ([]Record, error)
	// MarkOrphaned retires a tenant whose Tenant resource was deleted without its
	// finalizer: it revokes the tokens and keeps the data, under the policy it had.
	// It does nothing for a tenant that is not active.
	MarkOrphaned(ctx context.Context, id ID) error
	// Reassign lets another namespace adopt the data of a retained tenant. Conflict
	// if the tenant is not retained, or if the cluster has a tenant of the name.
	Reassign(ctx context.Context, id ID, to Owner) error
	// Revoke ends every token, password and session of a tenant and returns how
	// many tokens were valid. The operator issues new ones to its users.
	Revoke(ctx context.Context, id ID) (int64, error)
}
