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

	// permitTimeout bounds how long a request waits for permits before this
	// replica counts for itself.
	permitTimeout = 250 * time.Millisecond
	// maxWindows is how many tenants are remembered before those whose minute
	// is over are forgotten.
	maxWindows = 10000
)

// limiter holds each tenant to its requests per minute. It takes permits in
// blocks from a store that all replicas share, so that few requests cost a
// round trip (docs/adr/0004-request-rate.md). Without the store it counts for
// itself: the limiter is never why a request fails that the stores could answer.
type limiter struct {
	store tenant.RateStore // nil: it counts for itself
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	windows map[tenant.ID]*rateWindow
}

// rateWindow is a tenant's minute as this replica knows it. Its lock is held
// while permits are taken: requests that come meanwhile need them too.
type rateWindow struct {
	mu    sync.Mutex
	hard  int64     // the limit when it was last looked at
	local int64     // permits this replica has
	rest  int64     // permits left for everyone when last asked
	until time.Time // end of the minute
}

func newLimiter(store tenant.RateStore, log *slog.Logger) *limiter {
	return &limiter{store: store, now: time.Now, log: log, windows: map[tenant.ID]*rateWindow{}}
}

// verdict says whether a request may go on, how many more may this minute, and
// when the next one begins.
type verdict struct {
	ok        bool
	hard      int64 // the limit
	remaining int64
	reset     time.Duration
}

// take uses up one of a tenant's hard requests per minute.
func (l *limiter) take(ctx context.Context, id tenant.ID, hard int64) verdict {
	w := l.window(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch begun := w.until; {
	case !l.now().Before(begun):
		now := l.now()
		w.local, w.rest, w.until = 0, hard, now.Truncate(time.Minute).Add(time.Minute)
	case hard > w.hard: // raised: there may be more again
		w.rest += hard - w.hard
	}
	w.hard = hard
	if w.local == 0 && w.rest > 0 {
		l.lease(ctx, id, w)
	}
	ok := w.local > 0 && hard > 0
	if ok {
		w.local--
	}
	return verdict{ok: ok, hard: hard, remaining: min(w.local+w.rest, max(hard, 0)), reset: max(w.until.Sub(l.now()), 0)}
}

// lease gives the window permits of the store, or all that are left when the
// store does not answer.
func (l *limiter) lease(ctx context.Context, id tenant.ID, w *rateWindow) {
	err := errNoStore
	var p tenant.Permits
	if l.store != nil {
		// Whose request it is may go away; the permits are everyone's.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), permitTimeout)
		defer cancel()
		p, err = l.store.TakePermits(ctx, id, w.hard)
	}
	if err == nil {
		w.local, w.rest, w.until = p.Granted, p.Remaining, l.now().Add(p.Reset)
		return
	}
	if l.store != nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "requests are counted by this replica alone for a minute", slog.Any("error", err))
	}
	w.local, w.rest = w.rest, 0
}

var errNoStore = errors.New("no store")

// window returns a tenant's window.
func (l *limiter) window(id tenant.ID) *rateWindow {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[id]
	if w != nil {
		return w
	}
	if len(l.windows) >= maxWindows {
		l.forget()
	}
	w = &rateWindow{}
	l.windows[id] = w
	return w
}

// forget removes the windows that are over and not in use.
func (l *limiter) forget() {
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

// limitRate is the huma middleware, after authenticate, that answers 429 when
// the tenant's requests of the minute are used up.
func (s *Server) limitRate(ctx huma.Context, next func(huma.Context)) {
	who, ok := ctx.Context().Value(identityKey{}).(tenant.Identity)
	if !ok {
		s.refuse(ctx, errors.New("request counted without an identity"))
		return
	}
	v, err := s.permit(ctx.Context(), who)
	setRate(fiberCtx(ctx), v)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	next(ctx)
}

// permit uses up one of the tenant's requests per minute; RateLimited when there
// is none left.
func (s *Server) permit(ctx context.Context, who tenant.Identity) (verdict, error) {
	v := s.limiter.take(ctx, who.Tenant, who.Quota.RequestsPerMinute)
	if v.ok {
		return v, nil
	}
	return v, &fault.Error{Kind: fault.RateLimited, RetryAfter: max(v.reset, time.Second),
		Message: "this tenant's " + strconv.FormatInt(v.hard, 10) + " requests per minute are used up; try again in " + v.seconds() + " s"}
}

// seconds is how long until the next minute begins.
func (v verdict) seconds() string { return strconv.Itoa(int(math.Ceil(v.reset.Seconds()))) }

// setRate tells the client how many requests are left.
func setRate(c *fiber.Ctx, v verdict) {
	c.Set(headerRateLimit, strconv.FormatInt(v.hard, 10))
	c.Set(headerRateRemaining, strconv.FormatInt(v.remaining, 10))
	c.Set(headerRateReset, v.seconds())
}
