package tenant

import "context"

// ChangeReader reports which tenants changed in the store, so that the operator
// need not read them all. internal/postgres implements it.
type ChangeReader interface {
	// Poll returns what was committed since the last call. A change may be reported
	// twice, and is never missed. Not for concurrent use.
	Poll(ctx context.Context) (Changes, error)
}

// Changes are the tenants that changed, by the uid of their Tenant resource.
type Changes struct {
	// Reset means that any tenant may have changed: this is the first call, or the
	// database was replaced or restored.
	Reset bool
	// Tenants have changed settings or another placement.
	Tenants []ID
	// Usage are the tenants of which only the usage changed.
	Usage []ID
}
