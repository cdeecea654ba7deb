package apiserver

import (
	"context"
	"errors"
	"io"
	"net"
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
	// exportPace is the average speed in bytes per second at which a client must read.
	exportPace = 64 << 10
)

// errSlowReader ends an export whose client reads too slowly.
var errSlowReader = errors.New("the client reads too slowly")

// pacedBody is a response body that ends unless its client reads at the speed of
// exportPace, except during a pause. Reading fast does not extend the pause.
type pacedBody struct {
	*io.PipeReader
	conn    net.Conn
	timeout time.Duration   // of a pause
	ctx     context.Context //nolint:containedctx // the context of the response
	until   time.Time       // when the client must have read what it was sent
}

// Read reads the next chunk and extends the write deadline by the time that the server
// needed to produce it, and that the client may need to read it.
func (p *pacedBody) Read(b []byte) (int, error) {
	begin := time.Now()
	if p.until.IsZero() {
		p.until = begin.Add(p.timeout)
	}
	n, err := p.PipeReader.Read(b)
	p.until = p.until.Add(time.Since(begin) + time.Duration(n)*time.Second/exportPace)
	if most := time.Now().Add(p.timeout); p.until.After(most) {
		p.until = most
	}
	until := p.until
	if end, ok := p.ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	_ = p.conn.SetWriteDeadline(until) // on failure the write fails as well
	return n, err                      //nolint:wrapcheck // io.Reader's contract
}

// Close ends the export. The log says why.
func (p *pacedBody) Close() error {
	if !p.until.IsZero() && !time.Now().Before(p.until) {
		return p.CloseWithError(errSlowReader)
	}
	return p.PipeReader.Close()
}

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
