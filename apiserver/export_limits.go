package apiserver

import (
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxExports is the number of concurrent exports of a replica, each of which holds
	// a database connection with a snapshot. maxTenantExports is the number of those
	// that a tenant can run: others are left for other tenants.
	maxExports       = 3
	maxTenantExports = 2
	// exportRetry is the Retry-After of a rejected export.
	exportRetry = 30 * time.Second
)

// exports limits the concurrent exports of a replica, so that slow clients do not
// exhaust the database connections.
type exports struct {
	mu      sync.Mutex
	running map[tenant.Scope]bool
	tenants map[tenant.ID]int
}

func newExports() *exports {
	return &exports{running: map[tenant.Scope]bool{}, tenants: map[tenant.ID]int{}}
}

// acquire reserves an export and returns its release function: RateLimited if the
// user has a running export or the tenant is at its limit, Unavailable if the replica
// is.
func (x *exports) acquire(scope tenant.Scope) (release func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.running[scope]:
		return nil, &fault.Error{Kind: fault.RateLimited, RetryAfter: exportRetry,
			Message: "an export of this account is already running; retry when it has finished"}
	case x.tenants[scope.Tenant] >= maxTenantExports:
		return nil, &fault.Error{Kind: fault.RateLimited, RetryAfter: exportRetry,
			Message: "other users of this tenant are running exports; retry later"}
	case len(x.running) >= maxExports:
		return nil, &fault.Error{Kind: fault.Unavailable, RetryAfter: exportRetry,
			Message: "too many exports are running; retry later"}
	}
	x.running[scope] = true
	x.tenants[scope.Tenant]++
	return func() { x.release(scope) }, nil
}

func (x *exports) release(scope tenant.Scope) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.running, scope)
	if x.tenants[scope.Tenant]--; x.tenants[scope.Tenant] == 0 {
		delete(x.tenants, scope.Tenant)
	}
}
