package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	headerRateLimit     = "RateLimit-Limit"
	headerRateRemaining = "RateLimit-Remaining"
	headerRateReset     = "RateLimit-Reset"

	// permitTimeout bounds the wait for permits before this replica counts
	// locally.
	permitTimeout = 250 * time.Millisecond
	// maxWindows is the number of tenants kept before expired windows are evicted.
	maxWindows = 10000
)

// limiter enforces the requests per minute of tenants and applications. It leases permits in
// batches from a store shared by all replicas, so that few requests cost a round
// trip (docs/adr/0004-request-rate.md). If the store is unavailable it counts
// locally: the limiter never fails a request that could otherwise be served.
type limiter struct {
	store   tenant.RateStore // nil: count locally
	timeout time.Duration    // of the store, permitTimeout
	now     func() time.Time
	log     *slog.Logger

	mu      sync.Mutex
	windows map[tenant.RateLimited]*rateWindow
}

// rateWindow is the current minute of a tenant or application on this replica. Its lock is held
// while permits are leased, because concurrent requests need them too.
type rateWindow struct {
	mu    sync.Mutex
	hard  int64     // the limit at the last request
	local int64     // permits held by this replica
	rest  int64     // permits left in the store at the last lease
	until time.Time // end of the minute
}

func newLimiter(store tenant.RateStore, log *slog.Logger) *limiter {
	return &limiter{store: store, timeout: permitTimeout, now: time.Now, log: log, windows: map[tenant.RateLimited]*rateWindow{}}
}

// verdict is the limiter's decision on a request, with the remaining requests
// of the minute and the time until the next.
type verdict struct {
	ok        bool
	hard      int64 // the limit
	remaining int64
	reset     time.Duration
}

// take consumes one of the requests per minute.
func (l *limiter) take(ctx context.Context, of tenant.RateLimited, hard int64) verdict {
	w := l.window(of)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch begun := w.until; {
	case !l.now().Before(begun):
		now := l.now()
		w.local, w.rest, w.until = 0, hard, now.Truncate(time.Minute).Add(time.Minute)
	case hard > w.hard: // the limit was raised
		w.rest += hard - w.hard
	}
	w.hard = hard
	if w.local == 0 && w.rest > 0 {
		l.lease(ctx, of, w)
	}
	ok := w.local > 0 && hard > 0
	if ok {
		w.local--
	}
	return verdict{ok: ok, hard: hard, remaining: min(w.local+w.rest, max(hard, 0)), reset: max(w.until.Sub(l.now()), 0)}
}

// lease fetches permits from the store, or all remaining ones if the store is
// unavailable.
func (l *limiter) lease(ctx context.Context, of tenant.RateLimited, w *rateWindow) {
	err := errNoStore
	var p tenant.Permits
	if l.store != nil {
		// The permits serve other requests too, even if this one is canceled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
		defer cancel()
		p, err = l.store.TakePermits(ctx, of, w.hard)
	}
	if err == nil {
		w.local, w.rest, w.until = p.Granted, p.Remaining, l.now().Add(p.Reset)
		return
	}
	if l.store != nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "rate limit store unavailable; counting locally for one minute", slog.Any("error", err))
	}
	w.local, w.rest = w.rest, 0
}

var errNoStore = errors.New("no store")

// window returns the window of a tenant or application.
func (l *limiter) window(of tenant.RateLimited) *rateWindow {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[of]
	if w != nil {
		return w
	}
	if len(l.windows) >= maxWindows {
		l.evict()
	}
	w = &rateWindow{}
	l.windows[of] = w
	return w
}

// evict removes expired windows that are not in use.
func (l *limiter) evict() {
	now := l.now()
	for id, w := range l.windows {
		if !w.mu.TryLock() {
			continue
		}
		if !now.Before(w.until) {
			delete(l.windows, id)
		}
		w.mu.Unlock()
	}
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
	setRate(fiberCtx(ctx), v)
	if err != nil {
		s.abort(ctx, err)
		return
	}
	next(ctx)
}

// permit consumes one of the requests per minute of the application, if it has a rate of
// its own, and of the tenant; RateLimited if none is left. The verdict is that of the
// lower rest.
func (s *Server) permit(ctx context.Context, who tenant.Identity) (verdict, error) {
	v := verdict{ok: true, remaining: math.MaxInt64}
	if a := who.Application; a != nil && a.RequestsPerMinute < tenant.NoLimit {
		v = s.limiter.take(ctx, tenant.RateLimited{Tenant: who.Tenant, Application: a.ID}, a.RequestsPerMinute)
	}
	if v.ok {
		if t := s.limiter.take(ctx, tenant.RateLimited{Tenant: who.Tenant}, who.Quota.RequestsPerMinute); !t.ok || t.remaining < v.remaining {
			v = t
		}
	}
	if v.ok {
		setMetered(ctx, who.Tenant)
		return v, nil
	}
	return v, &fault.Error{Kind: fault.RateLimited, RetryAfter: max(v.reset, time.Second),
		Message: "request rate limit exceeded (" + strconv.FormatInt(v.hard, 10) + " per minute); retry in " + v.seconds() + " s"}
}

// seconds returns the seconds until the next minute, rounded up.
func (v verdict) seconds() string { return strconv.Itoa(int(math.Ceil(v.reset.Seconds()))) }

// setRate sets the RateLimit headers.
func setRate(c *fiber.Ctx, v verdict) {
	c.Set(headerRateLimit, strconv.FormatInt(v.hard, 10))
	c.Set(headerRateRemaining, strconv.FormatInt(v.remaining, 10))
	c.Set(headerRateReset, v.seconds())
}
