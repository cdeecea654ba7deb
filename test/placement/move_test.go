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
	neighbour := h.add(t, "neighbour", v1alpha1.Shared, placement.ExactUnits+100)
	mover := h.add(t, "mover", v1alpha1.Partition, 4*placement.ExactUnits)
	mover.mustFind(t)
	neighbour.mustFind(t)
	for _, to := range []v1alpha1.Isolation{v1alpha1.Shared, v1alpha1.Partition} {
		shared := to == v1alpha1.Shared
		mover.isolate(t, to)
		at := killInTheMiddle(t, h, mover, shared)
		killed := time.Now()
		h.server = h.Serve(t)
		searches, whole := 0, 0
		for m := mover.moving(t); m.Filling || m.Shared != shared; m = mover.moving(t) {
			if time.Since(killed) > installation.Patience {
				t.Fatalf("the move to %s is at %+v", to, m)
			}
			right, degraded, err := mover.find(searches % mover.messages)
			if err != nil {
				t.Errorf("moving to %s: %v", to, err)
			}
			if searches++; right && !degraded {
				whole++
			}
		}
		t.Logf("moving to %s the server was killed at %d of %d units; the move was done %v later, after %d searches, %d of them whole",
			to, at.Filled, at.Last, time.Since(killed).Round(time.Millisecond), searches, whole)
		mover.mustFind(t)
		neighbour.mustFind(t)
		if whole == 0 {
			t.Error("all searches during the migration were degraded")
		}
	}
}

// killInTheMiddle kills the server when some units are migrated, and checks that the
// migration is incomplete.
func killInTheMiddle(t *testing.T, h *host, u *user, shared bool) moving {
	t.Helper()
	for started := time.Now(); ; {
		m := u.moving(t)
		if m.Filled > 0 || m.Shared == shared {
			break
		}
		if time.Since(started) > installation.Patience {
			t.Fatalf("the move is at %+v", m)
		}
	}
	h.server.Kill()
	m := u.moving(t)
	if !m.Filling || m.Shared == shared || m.Filled >= m.Last {
		t.Fatalf("the migration completed before the kill: %+v", m)
	}
	return m
}
