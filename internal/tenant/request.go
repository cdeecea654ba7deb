package tenant

import "github.com/mnemo-dev/mnemo/internal/fault"

// Request identifies a write of a user that its client may retry. Within 24 hours a
// store executes it once and returns the same answer again. The zero Request is not
// idempotent.
type Request struct {
	Route string // the operation, such as "memory"
	Key   Hash   // of the client's idempotency key
	Body  Hash   // of the request body
}

// ErrKeyReused rejects an idempotency key that was used with a different body.
var ErrKeyReused error = fault.New(fault.Conflict, "this idempotency key was used for another request within the last 24 hours; use a new key for a new request")
