package tenant

import (
	"context"
	"time"
)

// RateLimited is what a request rate limits: a tenant, or with Application one of its
// applications.
type RateLimited struct {
	Tenant      ID
	Application UserID // 0 for the tenant
}

// Permits are requests that a replica may serve.
type Permits struct {
	Granted   int64         // number of permits taken; 0 if none remain in this minute
	Remaining int64         // permits that remain for all replicas
	Reset     time.Duration // time until the next minute, by the store's clock
}

// RateStore counts the requests of tenants and applications across all replicas.
// internal/postgres implements it.
type RateStore interface {
	// TakePermits takes some of the remaining permits of the minute, out of hard:
	// many while many remain, one at a time near the limit.
	TakePermits(ctx context.Context, of RateLimited, hard int64) (Permits, error)
}
