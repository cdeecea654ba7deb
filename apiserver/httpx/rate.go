package httpx

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
)

// The headers of responses to counted requests.
const (
	HeaderRateLimit     = "RateLimit-Limit"
	HeaderRateRemaining = "RateLimit-Remaining"
	HeaderRateReset     = "RateLimit-Reset"
)

const (
	// permitTimeout bounds the wait for permits before this replica counts
	// locally.
	permitTimeout = 250 * time.Millisecond
	// maxWindows is the number of keys kept before expired windows are evicted.
	maxWindows = 10000
)

// Permits are permits for requests in the current minute.
type Permits struct {
	Granted   int64
	Remaining int64         // for all replicas
	Reset     time.Duration // time until the next minute
}

// Lease takes permits for requests of a key from a store that all replicas share.
type Lease[K comparable] func(ctx context.Context, of K, limit int64) (Permits, error)

// Limiter enforces the requests per minute of each key. It leases permits in
// batches from a store shared by all replicas, so that few requests cost a round
// trip (docs/adr/0004-request-rate.md). If the store is unavailable it counts
// locally: the limiter never fails a request that could otherwise be served.
type Limiter[K comparable] struct {
	Now     func() time.Time
	Timeout time.Duration // of a lease

	lease Lease[K] // nil: count locally
	log   *slog.Logger

	mu      sync.Mutex
	windows map[K]*rateWindow
}

// rateWindow is the current minute of a key on this replica. Its lock is held
// while permits are leased, because concurrent requests need them too.
type rateWindow struct {
	mu    sync.Mutex
	limit int64     // at the last request
	local int64     // permits held by this replica
	left  int64     // permits left in the store at the last lease
	until time.Time // end of the minute
}

// NewLimiter returns a limiter. Without a lease it counts the requests of this replica only.
func NewLimiter[K comparable](lease Lease[K], log *slog.Logger) *Limiter[K] {
	return &Limiter[K]{Now: time.Now, Timeout: permitTimeout, lease: lease, log: log, windows: map[K]*rateWindow{}}
}

// Verdict is the limiter's decision on a request, with the remaining requests
// of the minute and the time until the next.
type Verdict struct {
	OK        bool
	Limit     int64
	Remaining int64
	Reset     time.Duration
}

// Take consumes one of the requests per minute of a key.
func (l *Limiter[K]) Take(ctx context.Context, of K, limit int64) Verdict {
	w := l.window(of)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch begun := w.until; {
	case !l.Now().Before(begun):
		now := l.Now()
		w.local, w.left, w.until = 0, limit, now.Truncate(time.Minute).Add(time.Minute)
	case limit > w.limit: // the limit was raised
		w.left += limit - w.limit
	}
	w.limit = limit
	if w.local == 0 && w.left > 0 {
		l.renew(ctx, of, w)
	}
	ok := w.local > 0 && limit > 0
	if ok {
		w.local--
	}
	return Verdict{OK: ok, Limit: limit, Remaining: min(w.local+w.left, max(limit, 0)), Reset: max(w.until.Sub(l.Now()), 0)}
}

// renew fetches permits from the store, or all remaining ones if the store is
// unavailable.
func (l *Limiter[K]) renew(ctx context.Context, of K, w *rateWindow) {
	err := errNoStore
	var p Permits
	if l.lease != nil {
		// The permits serve other requests too, even if this one is canceled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
		defer cancel()
		p, err = l.lease(ctx, of, w.limit)
	}
	if err == nil {
		w.local, w.left, w.until = p.Granted, p.Remaining, l.Now().Add(p.Reset)
		return
	}
	if l.lease != nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "rate limit store unavailable; counting locally for one minute", slog.Any("error", err))
	}
	w.local, w.left = w.left, 0
}

var errNoStore = errors.New("no store")

// window returns the window of a key.
func (l *Limiter[K]) window(of K) *rateWindow {
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
func (l *Limiter[K]) evict() {
	now := l.Now()
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

// Seconds returns the seconds until the next minute, rounded up.
func (v Verdict) Seconds() string { return strconv.Itoa(int(math.Ceil(v.Reset.Seconds()))) }

// SetHeaders sets the RateLimit headers of the response.
func (v Verdict) SetHeaders(c *fiber.Ctx) {
	c.Set(HeaderRateLimit, strconv.FormatInt(v.Limit, 10))
	c.Set(HeaderRateRemaining, strconv.FormatInt(v.Remaining, 10))
	c.Set(HeaderRateReset, v.Seconds())
}
