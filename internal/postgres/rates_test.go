package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// take takes permits of a tenant and checks the invariants of every result.
func (b *testBundle) take(t testing.TB, id tenant.ID, hard int64) tenant.Permits {
	t.Helper()
	p, err := b.TakePermits(t.Context(), tenant.RateLimited{Tenant: id}, hard)
	if err != nil {
		t.Fatal(err)
	}
	if p.Granted < 0 || p.Remaining < 0 || p.Reset > time.Minute {
		t.Fatalf("permits: %+v", p)
	}
	return p
}

func TestPermitsAreDivided(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	one, two := b.users[0].Tenant, b.users[2].Tenant
	const hard = 1000
	// At most two minutes begin during the test, so there are at most three
	// windows.
	begun := time.Now().Truncate(time.Minute)
	var granted, trips atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for p := b.take(t, one, hard); p.Granted > 0; p = b.take(t, one, hard) {
				granted.Add(p.Granted)
				trips.Add(1)
			}
		})
	}
	wg.Wait()
	windows := int64(time.Now().Truncate(time.Minute).Sub(begun)/time.Minute) + 1
	if n := granted.Load(); n < hard || n > hard*windows {
		t.Errorf("granted %d permits of %d in %d windows", n, hard, windows)
	}
	if n := trips.Load(); n > 100*windows {
		t.Errorf("%d round trips for %d permits", n, hard)
	}
	if p := b.take(t, two, 16); p.Granted != 1 {
		t.Errorf("the other tenant's first permits: p.Granted = %d, want 1", p.Granted)
	} else if p.Remaining != 15 {
		t.Errorf("the other tenant's first permits: p.Remaining = %d, want 15", p.Remaining)
	}
	if windows == 1 {
		if p := b.take(t, one, hard/2); p.Granted != 0 {
			t.Errorf("after the quota was lowered: p.Granted = %d, want 0", p.Granted)
		} else if p.Remaining != 0 {
			t.Errorf("after the quota was lowered: p.Remaining = %d, want 0", p.Remaining)
		}
		if p := b.take(t, one, hard+160); p.Granted != 10 && time.Now().Truncate(time.Minute).Equal(begun) {
			t.Errorf("after the quota was raised: %+v", p)
		}
	}
}

func TestPermitsRenewEveryMinute(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.users[0].Tenant
	b.take(t, id, 1)
	// Simulate the end of the minute.
	if _, err := b.owner.Exec(t.Context(), "update rate_windows set minute = minute - interval '1 minute', used = 1"); err != nil {
		t.Fatal(err)
	}
	if p := b.take(t, id, 1); p.Granted != 1 {
		t.Errorf("in the next minute: p.Granted = %d, want 1", p.Granted)
	} else if p.Remaining != 0 {
		t.Errorf("in the next minute: p.Remaining = %d, want 0", p.Remaining)
	}
}
