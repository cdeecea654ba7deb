package tenant

import (
	"context"
	"time"
)

// Permits are requests a tenant may make, taken for one replica.
type Permits struct {
	Granted   int64         // how many were taken; 0 when the minute has none left
	Remaining int64         // how many are left for everyone
	Reset     time.Duration // until the next minute begins, by the store's clock
}

// RateStore counts the requests of tenants for all replicas together.
// internal/postgres implements it.
type RateStore interface {
	// TakePermits takes some of the permits left of the tenant's minute, of
	// which there are hard: many while many are left, one when few are.
	TakePermits(ctx context.Context, id ID, hard int64) (Permits, error)
}
