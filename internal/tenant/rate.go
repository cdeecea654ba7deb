package tenant

import (
	"context"
	"time"
)

// Permits are requests that a replica may serve for a tenant.
type Permits struct {
	Granted   int64         // number of permits taken; 0 if none remain in this minute
	Remaining int64         // permits that remain for all replicas
	Reset     time.Duration // time until the next minute, by the store's clock
}

// RateStore counts each tenant's requests across all replicas.
// internal/postgres implements it.
type RateStore interface {
	// TakePermits takes some of the tenant's remaining permits of the minute,
	// out of hard: many while many remain, one at a time near the limit.
	TakePermits(ctx context.Context, id ID, hard int64) (Permits, error)
}
