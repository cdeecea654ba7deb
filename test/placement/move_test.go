package placement_test

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/test/installation"
)

// TestKilledWhileMoving kills the server during a tenant's migration to a shared
// placement, and during the migration back. Another server completes the migration.
// All searches return the right result or a degraded response, and never data of
// another tenant with the same placement.
func TestKilledWhileMoving(t *testing.T) {
	t.Parallel()
	h := newHost(t, installation.Options{})
	neighbor := h.add(t, "neighbor", v1alpha1.Shared, placement.ExactUnits+100)
	migrating := h.add(t, "migrated", v1alpha1.Partition, 4*placement.ExactUnits)
	migrating.mustFind(t)
	neighbor.mustFind(t)
	for _, to := range []v1alpha1.Isolation{v1alpha1.Shared, v1alpha1.Partition} {
		shared := to == v1alpha1.Shared
		migrating.isolate(t, to)
		at := killInTheMiddle(t, h, migrating, shared)
		killed := time.Now()
		h.server = h.Serve(t)
		searches, whole := 0, 0
		tick := time.NewTicker(interval)
		for m := migrating.migration(t); m.Running || m.Shared != shared; m = migrating.migration(t) {
			if time.Since(killed) > installation.Patience {
				t.Fatalf("the move to %s is at %+v", to, m)
			}
			right, degraded, err := migrating.find(searches % migrating.messages)
			if err != nil {
				t.Errorf("moving to %s: %v", to, err)
			}
			if searches++; right && !degraded {
				whole++
			}
			<-tick.C
		}
		tick.Stop()
		t.Logf("moving to %s the server was killed at %d of %d units; the move was done %v later, after %d searches, %d of them whole",
			to, at.Cursor, at.Last, time.Since(killed).Round(time.Millisecond), searches, whole)
		migrating.mustFind(t)
		neighbor.mustFind(t)
		if whole == 0 {
			t.Error("all searches during the migration were degraded")
		}
	}
}

// killInTheMiddle kills the server when some units are migrated, and checks that the
// migration is incomplete.
func killInTheMiddle(t *testing.T, h *host, u *user, shared bool) migration {
	t.Helper()
	for started := time.Now(); ; <-time.After(5 * time.Millisecond) {
		m := u.migration(t)
		if m.Cursor > 0 || m.Shared == shared {
			break
		}
		if time.Since(started) > installation.Patience {
			t.Fatalf("the move is at %+v", m)
		}
	}
	h.killServer(t)
	m := u.migration(t)
	if !m.Running || m.Shared == shared || m.Cursor >= m.Last {
		t.Fatalf("the migration completed before the kill: %+v", m)
	}
	return m
}
