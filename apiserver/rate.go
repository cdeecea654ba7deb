package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// newLimiter returns the limiter of tenants and applications. Without a store, each replica counts its own requests.
func newLimiter(store tenant.RateStore, log *slog.Logger) *httpx.Limiter[tenant.RateLimited] {
	if store == nil {
		return httpx.NewLimiter[tenant.RateLimited](nil, log)
	}
	return httpx.NewLimiter(func(ctx context.Context, of tenant.RateLimited, limit int64) (httpx.Permits, error) {
		p, err := store.TakePermits(ctx, of, limit)
		return httpx.Permits(p), err
	}, log)
}

// limitRate is the huma middleware, after authenticate, that responds 429 when
// the tenant exceeds its request rate.
func (s *Server) limitRate(ctx huma.Context, next func(huma.Context)) {
	who, ok := ctx.Context().Value(identityKey{}).(tenant.Identity)
	if !ok {
		s.abort(ctx, errors.New("rate limit without an identity"))
		return
	}
	v, err := s.permit(ctx.Context(), who)
	v.SetHeaders(httpx.FiberContext(ctx))
	if err != nil {
		s.abort(ctx, err)
		return
	}
	next(ctx)
}

// permit consumes one of the requests per minute of the application, if it has a rate of
// its own, and of the tenant; RateLimited if none is left. The verdict is that of the
// lower rest.
func (s *Server) permit(ctx context.Context, who tenant.Identity) (httpx.Verdict, error) {
	v := httpx.Verdict{OK: true, Remaining: math.MaxInt64}
	if a := who.Application; a != nil && a.RequestsPerMinute < tenant.NoLimit {
		v = s.limiter.Take(ctx, tenant.RateLimited{Tenant: who.Tenant, Application: a.ID}, a.RequestsPerMinute)
	}
	if v.OK {
		if t := s.limiter.Take(ctx, tenant.RateLimited{Tenant: who.Tenant}, who.Quota.RequestsPerMinute); !t.OK || t.Remaining < v.Remaining {
			v = t
		}
	}
	if v.OK {
		setMetered(ctx, who.Tenant)
		return v, nil
	}
	return v, &fault.Error{Kind: fault.RateLimited, RetryAfter: max(v.Reset, time.Second),
		Message: "request rate limit exceeded (" + strconv.FormatInt(v.Limit, 10) + " per minute); retry in " + v.Seconds() + " s"}
}
