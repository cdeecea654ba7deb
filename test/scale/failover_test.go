package scale_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/test/installation"
)

const (
	// lease is the duration of a lease that is not renewed, and retry the interval of
	// attempts to acquire it: controller-runtime's defaults.
	lease = 15 * time.Second
	retry = 2 * time.Second
)

// TestFailover kills the leader of two operators while it reconciles. The other one
// takes over when the lease expires and completes the work, and nothing is done
// twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	const atOnce = 40
	i := installation.New(t, installation.Options{})
	first := i.Operate(t, "MNEMO_LEADER_ELECT=true")
	installation.Eventually(t, installation.Patience, func() string { return leads(first) })
	second := i.Operate(t, "MNEMO_LEADER_ELECT=true")
	apply(t, i, 0, atOnce)
	many, stop := atOnce, make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() { // until the kill, so that the leader is never idle
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n := ready(t, i); many-n < atOnce/2 {
				apply(t, i, many, many+atOnce/4)
				many += atOnce / 4
			}
		}
	})
	installation.Eventually(t, installation.Patience, func() string {
		if ready := first.Count("mnemo_tenants", `"ready"`); ready < atOnce/4 {
			return fmt.Sprintf("%.0f Tenants are ready", ready)
		}
		return ""
	})
	if passes := second.Count("controller_runtime_reconcile_total", ""); passes != 0 {
		t.Errorf("the second operator reconciled %.0f times while the first one led", passes)
	}
	first.Kill()
	killed := time.Now()
	close(stop)
	writers.Wait()
	renewed := leaseOf(t, i).Spec.RenewTime.Time
	done := ready(t, i)
	if done == many {
		t.Fatal("all Tenants were ready before the kill")
	}
	installation.Eventually(t, installation.Patience, func() string { return leads(second) })
	took := time.Since(killed)
	if held := leaseOf(t, i).Spec.AcquireTime.Sub(renewed); held < lease-time.Second {
		t.Errorf("the lease was acquired %v after the last renewal: two operators may have led", held)
	}
	installation.Eventually(t, installation.Patience, func() string {
		if n := ready(t, i); n < many {
			return fmt.Sprintf("%d Tenants are ready", n)
		}
		return ""
	})
	t.Logf("of %d Tenants %d were ready when the leader was killed; the other operator led after %v and all were ready after %v",
		many, done, took.Round(10*time.Millisecond), time.Since(killed).Round(10*time.Millisecond))
	// A kill between the hash and the Secret of a token causes one more token for each
	// Tenant that was being reconciled.
	var tokens, valid int
	if err := i.Owner.QueryRow(t.Context(), "select count(*), count(*) filter (where expires_at is null) from tokens").Scan(&tokens, &valid); err != nil {
		t.Fatal(err)
	}
	if valid != 2*many {
		t.Errorf("%d tokens are valid, want one for each of %d users", valid, 2*many)
	}
	if most := 2*many + workers; tokens > most {
		t.Errorf("%d tokens were issued, want at most %d", tokens, most)
	}
}

// TestLeaderThatHangs suspends the leader's process. When it continues after another
// operator took over, it exits.
func TestLeaderThatHangs(t *testing.T) {
	t.Parallel()
	i := installation.New(t, installation.Options{})
	first := i.Operate(t, "MNEMO_LEADER_ELECT=true", "MNEMO_RESYNC=200ms")
	installation.Eventually(t, installation.Patience, func() string { return leads(first) })
	second := i.Operate(t, "MNEMO_LEADER_ELECT=true")
	first.Signal(t, syscall.SIGSTOP)
	installation.Eventually(t, installation.Patience, func() string { return leads(second) })
	first.Signal(t, syscall.SIGCONT)
	select {
	case <-first.Ended: // its Deployment would restart it
	case <-time.After(installation.Patience):
		t.Error("the first operator did not exit")
	}
	i.MustCreate(t, i.Tenant("late", "alice"))
	installation.Eventually(t, installation.Patience, func() string {
		if ready(t, i) != 1 {
			return "the second operator has not reconciled the Tenant"
		}
		return ""
	})
}

func leaseOf(t *testing.T, i *installation.Installation) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := i.Get(t.Context(), client.ObjectKey{Namespace: i.Namespace, Name: "mnemo-operator"}, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// leads returns "" if the operator is the leader.
func leads(o *installation.Process) string {
	if o.Count("leader_election_master_status", "") != 1 {
		return "the operator is not the leader"
	}
	return ""
}

// ready returns the number of Ready Tenants.
func ready(t *testing.T, i *installation.Installation) (n int) {
	t.Helper()
	var list v1alpha1.TenantList
	if err := i.List(t.Context(), &list, client.InNamespace(i.Namespace)); err != nil {
		t.Error(err)
	}
	for k := range list.Items {
		if isReady(&list.Items[k]) {
			n++
		}
	}
	return n
}
