package httpx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 9, 12, 0, 0, 0, time.UTC)

// fakeRates grants the permits of one minute like the database.
type fakeRates struct {
	mu    sync.Mutex
	used  int64
	trips int
	reset time.Duration
	fails error
}

func (f *fakeRates) lease(_ context.Context, _ string, limit int64) (Permits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trips++
	if f.fails != nil {
		return Permits{}, f.fails
	}
	n := max(0, (limit-f.used+15)/16)
	f.used += n
	return Permits{Granted: n, Remaining: max(0, limit-f.used), Reset: f.reset}, nil
}

func newTestLimiter(lease Lease[string], clock *time.Time) *Limiter[string] {
	l := NewLimiter(lease, slog.New(slog.DiscardHandler))
	l.Now = func() time.Time { return *clock }
	return l
}

func allowed(t *testing.T, l *Limiter[string], limit int64, requests int) int {
	t.Helper()
	n := 0
	for range requests {
		if l.Take(t.Context(), "one", limit).OK {
			n++
		}
	}
	return n
}

func TestLimiterLeasesInBatches(t *testing.T) {
	t.Parallel()
	clock := noon
	store := &fakeRates{reset: 30 * time.Second}
	l := newTestLimiter(store.lease, &clock)
	for i := range 600 {
		v := l.Take(t.Context(), "one", 600)
		if want := int64(600 - i - 1); !v.OK || v.Remaining != want || v.Reset != 30*time.Second {
			t.Fatalf("request %d: %+v, want %d remaining", i, v, want)
		}
	}
	if store.trips > 80 {
		t.Errorf("%d trips for 600 requests", store.trips)
	}
	before := store.trips
	if n := allowed(t, l, 600, 1000); n != 0 || store.trips != before {
		t.Errorf("%d allowed beyond the limit, with %d trips", n, store.trips-before)
	}
	if n := allowed(t, l, 610, 1000); n != 10 {
		t.Errorf("%d allowed after the limit was raised by 10", n)
	}
	clock, store.used = clock.Add(30*time.Second), 0
	if n := allowed(t, l, 5, 10); n != 5 {
		t.Errorf("%d of 5 allowed in the next minute", n)
	}
	if n := allowed(t, l, 0, 10); n != 0 {
		t.Errorf("%d allowed with a limit of 0", n)
	}
}

// An unavailable store does not fail requests, and is queried once a minute.
func TestLimiterWithoutItsStore(t *testing.T) {
	t.Parallel()
	clock := noon.Truncate(time.Minute)
	store := &fakeRates{reset: 20 * time.Second}
	l := newTestLimiter(store.lease, &clock)
	if n := allowed(t, l, 160, 5); n != 5 {
		t.Fatalf("%d of 5 allowed", n)
	}
	store.fails = errors.New("unavailable")
	if n := allowed(t, l, 160, 1000); n != 155 || store.trips != 2 {
		t.Errorf("%d more allowed with %d trips, want 155 with 2", n, store.trips)
	}
	clock = clock.Add(20 * time.Second)
	if n := allowed(t, l, 160, 1000); n != 160 || store.trips != 3 {
		t.Errorf("%d allowed in a minute without the store, %d trips", n, store.trips)
	}
	store.fails = nil
	clock = clock.Add(time.Minute)
	if allowed(t, l, 160, 1); store.trips != 4 {
		t.Errorf("%d trips when the store is back", store.trips)
	}
}

func TestLimiterEvictsExpiredWindows(t *testing.T) {
	t.Parallel()
	clock := noon
	l := newTestLimiter(nil, &clock)
	for i := range maxWindows {
		l.Take(t.Context(), fmt.Sprint(i), 10)
	}
	clock = clock.Add(time.Minute)
	l.Take(t.Context(), "one more", 10)
	if n := len(l.windows); n != 1 {
		t.Errorf("%d windows are kept", n)
	}
}
